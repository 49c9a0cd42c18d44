"""Direct branches with a recorded target that is not theirs."""

from __future__ import annotations

import numpy as np
import pytest
from builders.compat import AS_LLVM_PROFGEN
from builders.evidence import evidence, program, source
from builders.sources import Sample

from lbr2pgo.analyses.call_edges import call_edges
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.replay.astray import lead_astray
from lbr2pgo.replay.recordings import ReadingOptions, replay_sources
from lbr2pgo.replay.replay import Flow
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
        (0x1005, 0x1040, False),
        (0x1001, 0x1050, False),
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
    assert waterfall.losses_of(flow.tallies, "branches_made") == {"astray": 1}
    assert flow.tallies["branches_made"] == 2
    row = int(flow.instructions.index_of(image_array([LOOP]))[0])
    assert (flow.taken[row], flow.astray[row]) == (1, 1)
    assert flow.branches.to.tolist() == [BEFORE[1], HEAD]


def test_what_ran_on_from_its_target_is_kept() -> None:
    flow = flow_of(RESTARTED)
    assert flow.tallies["runs_valid"] == 2
    assert len(flow.counts.branches()) == 3, "what is written has all that was recorded"


def test_llvm_profgen_believes_it() -> None:
    flow = flow_of(RESTARTED, compat=AS_LLVM_PROFGEN)
    assert waterfall.losses_of(flow.tallies, "branches_made") == {}
    assert len(flow.branches) == 3


def test_it_is_no_outcome_of_its_branch() -> None:
    falls = Sample([(0x1018, 0x1050), (LOOP, LOOP), BEFORE])
    found = estimate(evidence(RESTARTED, falls))
    (row,) = np.flatnonzero(found.address == LOOP)
    assert (found.taken[row], found.not_taken[row]) == (1, 1)


def test_a_call_astray_is_no_call_edge() -> None:
    found = call_edges(evidence(Sample([(0x1000, 0x1050)]), Sample([(0x1000, 0x1040)])))
    assert [(row["callee"], row["count"]) for row in found.records()] == [("g", 1)]
