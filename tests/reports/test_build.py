from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import processes
from builders.evidence import evidence, flags, gather, gather_sources, program, source
from builders.recordings import (
    PIE,
    RECORDING,
    STATIC,
    STATIC_ENTRY,
    STATIC_RECORDING,
    TESTBINS,
)
from builders.sources import Sample

from lbr2pgo.analyses import registry
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.reports.build import ReportOptions, make_report, report_of
from lbr2pgo.support.addresses import slot_of
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.timings import Timings

CALL_STACK = 1 << BRANCH_FILTER_BITS["call_stack"] | 1


def options(**changes: object) -> ReportOptions:
    given = {"profiles": (RECORDING,), "binary": PIE, "libraries": False}
    return ReportOptions(**given | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def report():
    return make_report(options(views=3))


def test_every_analysis_has_a_table(report) -> None:
    assert {table.name for table in report.tables} >= set(registry.ANALYSES)
    assert report.table("outcomes") is not None
    assert report.table("nonsense") is None


def test_tables_have_unique_names(report) -> None:
    names = [table.name for table in report.tables]
    assert len(set(names)) == len(names)


def test_a_recording_of_another_build_is_refused_with_the_reason(tmp_path: Path) -> None:
    """All of its branches start within instructions of this one."""
    (start, to, _), path = STATIC_ENTRY, tmp_path / "traces"
    path.write_text(f"T {start + 1:x} {to + 1:x} {start + 1:x} 10\n")
    with pytest.raises(EmptyProfileError, match="valid fall-throughs") as raised:
        make_report(ReportOptions((path,), STATIC))
    assert "check that the binary is the one that was recorded" in str(raised.value)
    assert raised.value.tallies["branches_in_image/astray"] == 10


def test_it_says_what_was_recorded_and_what_was_lost(report) -> None:
    assert ("cpuid", "simulated") in report.details
    assert report.waterfall[0].step.key == "samples_read"
    assert report.waterfall[0].count == 128


def test_charts_of_blocks_and_loops(report) -> None:
    assert {timing.is_loop for timing in report.timings} == {False, True}
    for timing in report.timings:
        assert len(timing.cycles) == len(timing.count)
        assert list(timing.cycles) == sorted(timing.cycles)
        places = {mode.cycles for mode in timing.modes}
        assert places <= set(range(timing.cycles[0], timing.cycles[-1] + 1))


def test_the_hottest_functions_have_views(report) -> None:
    assert len(report.functions) == 3
    assert report.functions[0].name == "run"
    graph = report.functions[0].graph
    assert max(block.count for block in graph.blocks) > 0
    assert all(0 <= edge.source < len(graph.blocks) for edge in graph.edges)
    assert {edge.kind for edge in graph.edges} <= {"fallthrough", "taken", "jump", "indirect"}


def test_only_some_analyses() -> None:
    found = make_report(options(only=("hot-branches",)))
    assert [table.name for table in found.tables] == ["hot-branches"]
    assert found.timings == ()
    assert found.functions == ()


def test_samples_are_followed_through_the_functions_that_are_shown() -> None:
    def chains(**changes: object):
        table = make_report(options(only=("hyperblocks",), **changes)).table("hyperblocks")
        assert table is not None
        return list(table.records())

    every = chains(top=None)
    assert chains(top=1) == every[:1]
    assert chains(top=1, function="walk") == [row for row in every if row["function"] == "walk"][:1]


def test_an_unknown_analysis_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match="hot-branches"):
        options(only=("warm-branches",))


def test_one_function_with_its_code() -> None:
    found = make_report(options(function="walk", top=None))
    (view,) = found.functions
    assert view.name == "walk"
    outcomes = found.table("outcomes")
    assert outcomes is not None
    assert set(outcomes.column("function")) == {"walk"}


def test_a_single_function_is_the_programs_own_however_hot_its_libraries_are(
    tmp_path: Path,
) -> None:
    places = {file: f"/opt/{file.name}" for file in (processes.PIE, processes.LIBRARY)}
    path = processes.process_recording(tmp_path / "perf.data", places)
    given = options(
        profiles=(path,), binary=processes.LIBRARY, binaries=(processes.PIE,), only=("function",)
    )
    (own,) = make_report(given).functions
    (hottest,) = make_report(replace(given, views=1)).functions
    assert slot_of(own.placed_start) == 0 < slot_of(hottest.placed_start)
    assert own.share < hottest.share


def test_a_function_by_address() -> None:
    found = make_report(options(function="0x2134", only=("function",)))
    assert found.functions[0].name == "walk"


def test_a_function_that_does_not_exist_has_near_matches() -> None:
    with pytest.raises(InputError, match="walk"):
        make_report(options(function="wolk"))


def test_several_recordings_add_up() -> None:
    one = make_report(options(only=("hot-branches",), top=None)).tables[0]
    two = make_report(
        options(profiles=(RECORDING, RECORDING), only=("hot-branches",), top=None)
    ).tables[0]
    assert two.column("count") == tuple(2 * count for count in one.column("count"))  # type: ignore[operator]


def test_a_recording_of_another_binary_is_refused() -> None:
    with pytest.raises(InputError):
        make_report(options(profiles=(STATIC_RECORDING,)))


def test_another_machine_is_refused() -> None:
    recording = TESTBINS / "recordings" / "aarch64-interp.pie.perf.data"
    with pytest.raises(InputError):
        make_report(options(profiles=(recording,)))


def toy(*samples: Sample, filters: int | None = None):
    gathered = gather_sources([source(*samples, filters=filters)], program())
    return report_of(gathered, ReportOptions((Path("memory"),), Path("toy"), views=2))


def test_a_call_stack_recording_has_a_flame_graph_and_explains_the_rest() -> None:
    sample = Sample([(0x1000, 0x1040)], ip=0x1040, event=0, weight=7)
    found = toy(sample, filters=CALL_STACK)
    assert found.call_tree is not None
    assert (found.call_tree.total, found.call_tree.callees[0].name) == (7, "main")
    for name in ("hot-branches", "outcomes", "latency", "hyperblocks", "indirect-targets"):
        table = found.table(name)
        assert table is not None
        assert table.rows == ()
        assert table.notes


def test_a_very_deep_call_stack() -> None:
    stack = [(0x1000, 0x1000 if i % 2 else 0x1020) for i in range(3000)]
    found = toy(Sample(stack, ip=0x1005, event=0), filters=CALL_STACK)
    assert found.call_tree is not None


@pytest.mark.parametrize("filters", [None, 1 << 10 | 1, CALL_STACK])
def test_every_analysis_bears_every_kind_of_recording(filters: int | None) -> None:
    event = -1 if filters is None else 0
    samples = [
        Sample([], event=event),
        Sample([(0x1016, 0x1005, flags(3)), (0x1009, 0x1015, flags(0))], event=event),
        Sample([(0, 0), (0x1018, 0x7FFF0000), (0x7FFF0000, 0x1050)], event=event),
    ]
    found = toy(*samples, filters=filters)
    assert {table.name for table in found.tables} >= set(registry.ANALYSES)


def test_nothing_recorded_at_all() -> None:
    found = toy()
    assert all(not table.rows or table.name == "mispredictions-summary" for table in found.tables)


def test_saved_counts_have_branches_and_no_cycles(tmp_path: Path) -> None:
    from lbr2pgo.profiles.counts import saved_counts

    counts = gather((RECORDING,), PIE).evidence.flow.counts
    saved_counts.write(counts, tmp_path / "counts.npz")
    found = make_report(options(profiles=(tmp_path / "counts.npz",)))
    direct = make_report(options())
    for name in ("hot-branches", "indirect-targets", "call-edges"):
        ours, theirs = found.table(name), direct.table(name)
        assert ours is not None
        assert theirs is not None
        assert ours.rows == theirs.rows
    chains = found.table("hyperblocks")
    assert chains is not None
    assert {*chains.column("path_share"), *chains.column("paths")} == {None}
    latency, outcomes = found.table("latency"), found.table("outcomes")
    assert latency is not None
    assert outcomes is not None
    assert any("counts of branches, and no cycles" in note for note in latency.notes)
    assert any("if observations are independent" in note for note in outcomes.notes)


def test_a_stripped_binary_without_dwarf(tmp_path: Path, tool, run) -> None:
    stripped = tmp_path / "interp.pie"
    run(tool("llvm-strip-22"), "-o", stripped, PIE)
    found = make_report(options(binary=stripped, views=1))
    table = found.table("hot-branches")
    assert table is not None
    assert table.column("count") == make_report(options()).table("hot-branches").column("count")  # type: ignore[union-attr]
    assert set(table.column("from_line")) == {None}
    assert any("no debug information" in note for note in table.notes)


def test_670_samples_of_depth_32_are_21440_entries() -> None:
    stack = [(0x1016, 0x1005, flags(2)), (0x1009, 0x1015, flags(2))] * 16
    found = evidence(*[Sample(stack)] * 670)
    rows = {row.step.key: row.count for row in toy(*[Sample(stack)] * 670).waterfall}
    assert rows["samples_read"] == 670
    assert rows["branches_read"] == rows["branches_in_image"] == 21_440
    assert int(np.sum(found.flow.branches.count)) == 21_440


def test_both_readings_and_the_analyses_tell_how_far_they_are() -> None:
    heard: list[tuple[str, float | None]] = []
    stages: list[str] = []
    make_report(
        ReportOptions((RECORDING,), PIE, libraries=False),
        lambda _samples, share: heard.append((stages[-1], share)),
        Timings(lambda name, _: stages.append(name)),
    )
    for reading in ("read and count", "look at the samples again"):
        shares = [share for stage, share in heard if stage == reading]
        assert shares[-1] == 1.0
    told = [share for stage, share in heard if stage.startswith("analyse: ")]
    assert told == [n / len(registry.ANALYSES) for n in range(len(registry.ANALYSES))]
