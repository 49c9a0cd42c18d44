"""Branches sampled one by one: as Arm SPE gives them through perf, and in perf script text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.evidence import gather_sources, program, source
from builders.sources import MemorySource, Sample

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.function_view import function_view
from lbr2pgo.analyses.outcomes import outcomes
from lbr2pgo.evidence.single_branches import SINGLE_BRANCHES
from lbr2pgo.model.branch_stacks import NOT_TAKEN, PREDICTED
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Addresses, EventInfo, StackSource

FORWARD, BACK = (0x1006, 0x1010), (0x1016, 0x1005)
TAKEN, FELL_THROUGH = PREDICTED, PREDICTED | NOT_TAKEN


def spe(samples: Sequence[Sample], name: str = "arm_spe_0/branch_filter=1/") -> Evidence:
    event = EventInfo(name, records_single_branches=name.startswith("arm_spe"))
    found = MemorySource(
        [Sample(s.stack, s.pid, s.time, 0, s.weight, s.ip) for s in samples],
        events=(event,), addresses=Addresses.IMAGE,
    )  # fmt: skip
    return gather_sources([found], program()).evidence


def rows(found: Evidence) -> dict[object, tuple[object, object]]:
    table = outcomes(found)[0]
    return {r["address"]: (r["taken"], r["not_taken"]) for r in table.records()}


@pytest.mark.parametrize("name", ["arm_spe_0/branch_filter=1/", "branch"])
def test_outcomes_follow_from_what_was_seen_of_each_branch(name: str) -> None:
    found = spe(
        [
            *[Sample([(*FORWARD, TAKEN)])] * 3,
            *[Sample([(0x1006, 0x1008, FELL_THROUGH)])] * 5,
            Sample([(*BACK, TAKEN)], weight=2),
        ],
        name,
    )
    assert rows(found) == {0x1006: (3, 5), 0x1016: (2, 0)}


def test_branches_that_never_jump_show_where_nothing_else_ran() -> None:
    """No entry of these is a branch taken, so replay knows no code of the function."""
    found = spe([Sample([(0x1006, 0x1008, FELL_THROUGH)], weight=4)])
    assert len(found.flow.instructions) == 0
    assert rows(found) == {0x1006: (0, 4)}
    beside = spe([Sample([(0x1006, 0x1008, FELL_THROUGH)]), Sample([(0x1022, 0x1005, TAKEN)])])
    assert rows(beside) == {0x1006: (0, 1)}
    code = function_view(beside, beside.program.regions.by_name("main") or 0).code
    shares = {row["address"]: row["taken_share"] for row in code.records()}
    assert {address: share for address, share in shares.items() if share is not None} == {0x1006: 0}
    table = outcomes(replace(found, function=found.program.regions.by_name("g")))[0]
    assert table.rows == ()


def test_there_are_no_fall_throughs_of_single_branches() -> None:
    """FEAT_SPE_PBT tells where the branch before went to."""
    found = spe([Sample([(*FORWARD, TAKEN), (0, 0x1005, 0)])])
    assert len(found.flow.judged.runs) == 0
    assert found.flow.branches.count.sum() == 2
    assert rows(found) == {0x1006: (1, 0)}


def test_a_stack_whose_branches_were_all_taken_is_no_such_sample() -> None:
    found = gather_sources([source(Sample([FORWARD]))], program()).evidence
    singles = found.found(SINGLE_BRANCHES)
    assert singles is not None
    assert len(singles) == 0
    assert rows(found) == {}


def test_faults_and_wrong_paths_are_no_outcomes() -> None:
    found = spe([Sample([(*FORWARD, 12 << 20)]), Sample([(*FORWARD, 1 << 24)]),
                 Sample([(*BACK, TAKEN)])])  # fmt: skip
    assert rows(found) == {0x1016: (1, 0)}


def test_the_report_says_how_they_were_sampled() -> None:
    notes = outcomes(spe([Sample([(*FORWARD, TAKEN)])]))[0].notes
    assert any("one by one" in note for note in notes)


def test_perf_data_after_inject_is_recognised_by_the_events_name(tmp_path: Path) -> None:
    """perf inject keeps the trace's event and names what it makes of it `branch`."""
    kind = build.IDENTIFIER | build.IP | build.TID | build.TIME
    trace = build.Event(kind, 0, ids=(1,), type=8, name="arm_spe_0/branch_filter=1/")
    made = build.Event(
        kind | build.BRANCH_STACK, build.HW_INDEX, ids=(2,), name="branch"
    )  # fmt: skip
    sample = build.Sample(((0x1006, 0x1010, TAKEN), (0, 0x1005, 0)), sample_id=2)
    events = [trace, made]
    features = {12: build.event_desc(events)}
    path = tmp_path / "perf.data"
    path.write_bytes(build.file_form(events, sample.encode(made), features))
    found = open_source(path)
    assert isinstance(found, StackSource)
    assert all(event.records_single_branches for event in found.info.events)
    (batch,) = found.batches()
    assert batch.event.tolist() == [1]


def test_perf_script_text_tells_not_taken_entries(tmp_path: Path) -> None:
    path = tmp_path / "spe.txt"
    text = "".join(
        f"app 7 1.{i:06}: arm_spe_0/branch_filter=1/: 1006 {entry}\n"
        for i, entry in enumerate(
            ["0x1006/0x1010/P/-/-/0/COND/-", "0x1006/0x1008/PN/-/-/0/COND/-",
             "0x1006/0x1008/MN/-/-/0/COND/-", "0x1006/0x1010/M/-/-/0/COND/-"]
        )
    )  # fmt: skip
    path.write_text(text)
    found = gather_sources([open_source(path)], program()).evidence
    assert rows(found) == {0x1006: (2, 2)}
    assert found.flow.tallies["branches_in_image/not_taken"] == 2
    assert found.flow.branches.mispredicted.tolist() == [1]
