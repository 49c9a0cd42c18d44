"""Direct branches with a recorded target that is not theirs, and branches where none is."""

from __future__ import annotations

import numpy as np
import pytest
from builders.bolt import lines_of
from builders.compat import AS_LLVM_PROFGEN, AS_PERF2BOLT
from builders.evidence import evidence, flags, program, source
from builders.sources import Sample

from lbr2pgo.analyses.call_edges import call_edges
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.dumping.disasm import lines
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.replay.astray import lead_astray
from lbr2pgo.replay.recordings import replay_sources
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.replay.replaying import ReadingOptions
from lbr2pgo.support.addresses import image_array

LOOP, HEAD = 0x1016, 0x1005
"""`jne` at the loop's end, and where it goes."""
BEFORE = (0x1012, 0x1015)
RESTARTED = Sample([(LOOP, HEAD), (LOOP, LOOP), BEFORE])
"""Newest first: the emulator shows the loop's jump in vain before it takes it."""


def flow_of(*samples: Sample, compat: Compat = OURS) -> Flow:
    flow = replay_sources([source(*samples)], program(), ReadingOptions(compat=compat)).flow
    waterfall.check(flow.tallies)
    return flow


@pytest.mark.parametrize(
    ("from_", "to", "is_astray"),
    [
        (LOOP, HEAD, False),
        (LOOP, LOOP, True),
        (LOOP, 0x1018, True),
        (0x1000, 0x1040, False),
        (0x1000, 0x1050, True),
        (0x1009, 0x1010, True),
        (0x1018, 0x1050, False),
        (0x1020, 0x1041, False),
        (0x1005, 0x1040, True),
        (0x1001, 0x1050, True),
    ],
)
def test_a_direct_branch_leads_where_its_instruction_says(
    from_: int, to: int, is_astray: bool
) -> None:
    code = program().instructions_for(image_array([0x1000, 0x1020]))
    known = np.array([FROM | TO], np.uint8)
    found = lead_astray(image_array([from_]), image_array([to]), known, code)
    assert found.tolist() == [is_astray]


def test_what_left_the_image_may_be_anything() -> None:
    code = program().instructions_for(image_array([0x1000]))
    known = np.array([FROM, TO], np.uint8)
    found = lead_astray(image_array([LOOP, LOOP]), image_array([0, HEAD]), known, code)
    assert found.tolist() == [False, False]


def test_it_is_counted_apart_and_not_as_taken() -> None:
    flow = flow_of(RESTARTED)
    assert waterfall.losses_of(flow.tallies, "branches_in_image") == {"astray": 1}
    assert flow.tallies["branches_in_image"] == 2
    row = int(flow.instructions.index_of(image_array([LOOP]))[0])
    assert (flow.taken[row], flow.ended[row], flow.jumped[row]) == (1, 2, 1)
    assert flow.branches.to.tolist() == [BEFORE[1], HEAD]


def test_what_ran_on_from_its_target_is_kept() -> None:
    flow = flow_of(RESTARTED)
    assert flow.tallies["runs_valid"] == 2
    assert (HEAD, LOOP) not in zip(flow.counts.to, flow.counts.end, strict=True)
    bare = flow.counts.has(TO | END) & ~flow.counts.has(BRANCH)
    assert (flow.counts.to[bare].tolist(), flow.counts.end[bare].tolist()) == ([LOOP], [LOOP])


@pytest.mark.parametrize("compat", [AS_LLVM_PROFGEN, AS_PERF2BOLT])
def test_the_peers_believe_it(compat: Compat) -> None:
    flow = flow_of(RESTARTED, compat=compat)
    assert waterfall.losses_of(flow.tallies, "branches_in_image") == {}
    assert len(flow.branches) == len(flow.counts.branches()) == 3


def test_it_is_written_nowhere() -> None:
    """Neither to fdata nor to counts, which add up when they are read again."""
    counts = flow_of(RESTARTED).counts
    fdata, _ = fdata_from_counts(counts, program())
    assert {line for line in lines_of(fdata) if " main 16 " in line} == {"1 main 16 1 main 5 0 1"}
    assert counts.tallies["branches_in_image"] == counts.branch_total() == 2
    again = replay(counts, program())
    assert len(again.astray) == 0
    assert again.counts is counts


def test_mispredictions_of_others_stay() -> None:
    missed = Sample([(LOOP, HEAD, flags(missed=True)), (LOOP, LOOP, flags(missed=True)), BEFORE])
    counts = flow_of(missed).counts
    assert int(counts.mispredicted.sum()) == 1


def test_it_is_no_outcome_of_its_branch() -> None:
    falls = Sample([(0x1018, 0x1050), (LOOP, LOOP), BEFORE])
    found = estimate(evidence(RESTARTED, falls))
    (row,) = np.flatnonzero(found.address == LOOP)
    assert (found.taken[row], found.not_taken[row]) == (1, 1)


def test_what_starts_at_no_branch_is_written_nowhere() -> None:
    """An interrupt, or a program other than the one that ran."""
    flow = flow_of(Sample([(LOOP, HEAD), (0x1005, 0x1040), BEFORE]))
    assert waterfall.losses_of(flow.tallies, "branches_in_image") == {"astray": 1}
    assert 0x1005 not in flow.branches.from_.tolist()
    fdata, _ = fdata_from_counts(flow.counts, program())
    assert not [line for line in lines_of(fdata) if " main 5 0" in line.partition(" 1 ")[0]]


def test_nor_are_its_copies() -> None:
    """Those of a newest entry that the recorder repeats, which `perf report` counts."""
    wrong, right = ((0x1000, callee) for callee in (0x1050, 0x1040))
    found = evidence(*(Sample([call, call, BEFORE]) for call in (wrong, right)))
    assert found.duplicate_notes()
    seen = dict(zip(found.recorded.to.tolist(), found.recorded.count.tolist(), strict=True))
    assert seen == {0x1040: 2, BEFORE[1]: 2}


@pytest.mark.parametrize(
    ("samples", "taken", "not_taken"),
    [
        ([Sample([(LOOP, LOOP), BEFORE])], 0, 0),  # nothing ran on behind it
        ([Sample([(LOOP, HEAD), BEFORE])] * 2 + [Sample([(LOOP, LOOP), BEFORE])] * 2, 2, 0),
        ([RESTARTED, Sample([(0x1018, 0x1050), BEFORE])], 1, 1),
    ],
)
def test_code_and_outcomes_give_the_same_share(
    samples: list[Sample], taken: int, not_taken: int
) -> None:
    found = evidence(*samples)
    outcomes = estimate(found)
    rows = np.flatnonzero(outcomes.address == LOOP)
    seen = outcomes.taken[rows].sum(), outcomes.not_taken[rows].sum()
    assert seen == (taken, not_taken)
    shown = lines(found.program, DebugInfo.open(found.program.image), 0, found.flow)
    (line,) = (line for line in shown if f" {LOOP:x}: " in line)
    share = f", taken share {taken / (taken + not_taken):.1%}" if taken else ""
    assert line.endswith(f"taken {taken}, not taken {not_taken}{share}")


def test_the_oldest_entries_of_stacks_are_as_likely_astray_as_others() -> None:
    """Six entries stand at the jump, two of them astray, and four runs ended there."""
    oldest = [Sample([(0x1018, 0x1050), (LOOP, to)]) for to in (HEAD, LOOP)]
    inner = [Sample([(LOOP, to), BEFORE]) for to in (HEAD, HEAD, HEAD, LOOP)]
    flow = flow_of(*oldest, *inner)
    row = int(flow.instructions.index_of(image_array([LOOP]))[0])
    assert (flow.taken[row], flow.ended[row], flow.jumped[row]) == (4, 4, 3)


def test_a_call_astray_is_no_call_edge() -> None:
    found = call_edges(evidence(Sample([(0x1000, 0x1050)]), Sample([(0x1000, 0x1040)])))
    assert [(row["callee"], row["count"]) for row in found.records()] == [("g", 1)]
