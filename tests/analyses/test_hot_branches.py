from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders.evidence import evidence, flags, gather
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.hot_branches import hot_branches

ROUND = Sample([(0x1016, 0x1005), (0x1012, 0x1015), (0x1006, 0x1010), (0x1016, 0x1005)])


def test_branches_are_counted_by_both_ends_hottest_first() -> None:
    table = hot_branches(evidence(ROUND))
    assert table.column("count") == (2, 1, 1)
    assert table.column("share") == (0.5, 0.25, 0.25)
    first = next(table.records())
    assert (first["from_address"], first["to_address"]) == (0x1016, 0x1005)
    assert (first["from_function"], first["to_function"]) == ("main", "main")


def test_equal_counts_are_ordered_by_address() -> None:
    assert hot_branches(evidence(ROUND)).column("from_address") == (0x1016, 0x1006, 0x1012)


def test_the_table_is_cut_and_says_how_much_there_was() -> None:
    table = hot_branches(evidence(ROUND), 1)
    assert (len(table), table.found) == (1, 3)
    assert len(hot_branches(evidence(ROUND), None)) == 3


def test_a_branch_to_another_image_has_no_address_there() -> None:
    table = hot_branches(evidence(Sample([(0x1018, 0x7FFF0000)])))
    assert table.rows[0][-3:] == ("[outside]", None, None)


def test_one_function_shows_what_leaves_and_reaches_it() -> None:
    found = evidence(Sample([(0x1041, 0x1005), (0x1000, 0x1040), (0x1022, 0x1050)]))
    function = found.program.regions.by_name("g")
    table = hot_branches(replace(found, function=function))
    assert sorted(table.column("from_address")) == [0x1000, 0x1041]
    assert sum(table.column("share")) == 2 / 3  # of all branches, not of those shown


def test_without_samples_there_is_an_empty_table() -> None:
    assert hot_branches(evidence()).rows == ()


def test_missing_source_lines_are_explained() -> None:
    assert any("no debug information" in note for note in hot_branches(evidence(ROUND)).notes)


def test_a_filtered_recording_still_has_branches_and_says_that_some_are_missing() -> None:
    table = hot_branches(evidence(ROUND, filters=1 << 10 | 1))
    assert table.column("count") == (2, 1, 1)
    assert any("filtered by branch type" in note for note in table.notes)


def test_a_call_stack_recording_has_no_branches_and_says_so() -> None:
    table = hot_branches(evidence(ROUND, filters=1 << 11 | 1))
    assert table.rows == ()
    assert any("call-stack recording" in note for note in table.notes)


def test_source_lines_of_a_real_recording() -> None:
    table = hot_branches(gather((RECORDING,), PIE).evidence, 5)
    assert all(str(line).startswith("interp.c:") for line in table.column("to_line"))
    assert Path(str(table.column("from_function")[0])).name == "run"


def test_flags_change_no_count() -> None:
    table = hot_branches(evidence(Sample([(0x1016, 0x1005, flags(5, missed=True))])))
    assert table.column("count") == (1,)
