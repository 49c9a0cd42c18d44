from __future__ import annotations

import pytest
from builders.evidence import evidence, with_limits
from builders.sources import Sample

from lbr2pgo.analyses.hyperblocks import hyperblocks

BACK, LONG, SHORT, FORWARD = (0x1016, 0x1005), (0x1012, 0x1015), (0x1009, 0x1015), (0x1006, 0x1010)


def rounds(*ways: str) -> Sample:
    parts = {"l": [LONG, FORWARD], "s": [SHORT]}
    return Sample([*(entry for way in ways for entry in (BACK, *parts[way])), BACK])


def test_the_likely_way_is_one_chain_across_the_layout() -> None:
    table, *_ = hyperblocks(evidence(*(rounds("l", "l", "l", "s") for _ in range(10))))
    row = next(table.records())
    assert row["chain"] == "0x1005 0x1010 0x1015"
    assert (row["blocks"], row["bytes"], row["pieces"]) == (3, 3 + 4 + 3, 3)
    # 30 times the forward branch, less 10 that would have to branch then, and 30 jumps.
    assert row["saved"] == 30 - 10 + 30
    assert row["executions"] == 40
    assert row["likelihood"] == pytest.approx(0.75)
    assert (row["function"], row["function_share"]) == ("main", 1)
    assert 0.8 < row["share"] < 1


def test_the_chain_takes_the_way_that_most_take() -> None:
    table, *_ = hyperblocks(evidence(*(rounds("s", "s", "s", "l") for _ in range(10))))
    row = next(table.records())
    assert row["chain"] == "0x1005 0x1008 0x1015"
    assert row["saved"] == 30  # the jump of the short way


def test_a_filtered_recording_says_why_there_are_none() -> None:
    table, *_ = hyperblocks(evidence(rounds("l", "s"), filters=1 << 10 | 1))
    assert table.rows == ()
    assert any("filtered" in note for note in table.notes)


def test_the_part_that_went_the_whole_way_is_counted_and_bounded() -> None:
    table, *_ = hyperblocks(evidence(*(rounds("l", "l", "l", "s") for _ in range(10))))
    row = next(table.records())
    # Each sample's stack starts with a round: of 40, 30 went the long way.
    assert (row["path_share"], row["paths"]) == (0.75, 30)
    assert 0.55 < row["path_low"] < 0.75 < row["path_high"] < 0.9


def test_of_a_way_longer_than_any_stack_nothing_is_known() -> None:
    short = [Sample([FORWARD, BACK]), Sample([LONG, FORWARD]), Sample([BACK, LONG])]
    row = next(hyperblocks(evidence(*short * 5))[0].records())
    assert row["chain"] == "0x1005 0x1010 0x1015"
    assert (row["likelihood"], row["path_share"], row["paths"]) == (1, None, 0)


def test_without_samples_only_edges_tell() -> None:
    table, *_ = hyperblocks(with_limits(evidence(rounds("l", "l", "s")), has_samples=False))
    row = next(table.records())
    assert (row["path_share"], row["path_low"], row["path_high"], row["paths"]) == (None,) * 4
    assert row["likelihood"] == pytest.approx(2 / 3)
    assert any("holds no samples" in note for note in table.notes)
