"""The table of traces: building, sums over it, merging."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    RETURN,
    TO,
    BranchCounts,
    aggregate,
    sum_by,
    with_unknown_predictions,
)
from lbr2pgo.model.count_sums import merge

Row = tuple[int, int, int, int, int, int]
"""From, to, end, known, count, mispredicted."""
COLUMNS = ("from_", "to", "end", "known", "count", "mispredicted")
WHOLE = BRANCH | FROM | TO | END


def counts_of(rows: Sequence[Row], **fields: object) -> BranchCounts:
    columns = [np.array([row[i] for row in rows], np.uint64) for i in range(6)]
    columns[3] = columns[3].astype(np.uint8)
    return aggregate(*columns, **fields)  # type: ignore[arg-type]


def rows_of(counts: BranchCounts) -> list[Row]:
    return list(zip(*(getattr(counts, name).tolist() for name in COLUMNS), strict=True))


def is_same(a: BranchCounts, b: BranchCounts) -> bool:
    return all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in COLUMNS)


def test_equal_rows_add_up_and_are_sorted() -> None:
    counts = counts_of([(9, 1, 2, WHOLE, 3, 1), (5, 1, 2, WHOLE, 1, 0), (9, 1, 2, WHOLE, 4, 2)])
    assert rows_of(counts) == [(5, 1, 2, WHOLE, 1, 0), (9, 1, 2, WHOLE, 7, 3)]


def test_what_is_not_known_is_zero_and_tells_nothing_apart() -> None:
    counts = counts_of([(1, 2, 3, BRANCH | FROM, 1, 0), (1, 9, 9, BRANCH | FROM, 1, 1)])
    assert rows_of(counts) == [(1, 0, 0, BRANCH | FROM, 2, 1)]


def test_the_same_addresses_known_in_other_ways_are_other_rows() -> None:
    known = [WHOLE, WHOLE | RETURN, WHOLE & ~BRANCH, BRANCH | FROM | TO]
    assert len(counts_of([(1, 2, 3, bits, 1, 0) for bits in known])) == 4


def test_rows_that_were_never_seen_are_dropped() -> None:
    assert len(counts_of([(1, 2, 3, WHOLE, 0, 0)])) == 0


def test_no_rows_are_no_counts() -> None:
    counts = counts_of([])
    assert (len(counts), len(counts.branches()), len(counts.runs())) == (0, 0, 0)
    assert counts.from_.dtype == counts.count.dtype == np.uint64
    assert counts.known.dtype == np.uint8


def test_large_counts_are_exact() -> None:
    counts = counts_of([(1, 2, 3, WHOLE, 1 << 62, 0), (1, 2, 3, WHOLE, 1, 0)])
    assert counts.count.tolist() == [(1 << 62) + 1]


ROWS: list[Row] = [
    (1, 2, 5, WHOLE, 10, 1),
    (1, 2, 7, WHOLE, 20, 2),
    (4, 2, 5, WHOLE, 5, 0),
    (1, 2, 0, BRANCH | FROM | TO, 3, 3),
    (0, 2, 5, BRANCH | TO | END, 7, 0),
    (0, 2, 5, TO | END, 100, 0),
    (1, 0, 0, BRANCH | FROM, 2, 0),
]


def test_branches_are_the_sum_over_ends() -> None:
    branches = counts_of(ROWS).branches()
    found = zip(
        branches.from_.tolist(), branches.to.tolist(), branches.known.tolist(),
        branches.count.tolist(), branches.mispredicted.tolist(), strict=True,
    )  # fmt: skip
    assert set(found) == {
        (1, 2, FROM | TO, 33, 6), (4, 2, FROM | TO, 5, 0), (0, 2, TO, 7, 0), (1, 0, FROM, 2, 0),
    }  # fmt: skip


def test_fall_throughs_are_the_sum_over_branches() -> None:
    runs = counts_of(ROWS).runs()
    assert list(zip(runs.start.tolist(), runs.end.tolist(), runs.count.tolist(), strict=True)) == [
        (2, 5, 122), (2, 7, 20),
    ]  # fmt: skip


def test_rows_in_words() -> None:
    words = list(counts_of(ROWS).rows())
    assert "0x1 -> 0x2, straight on to 0x7: 20, mispredicted 2" in words
    assert "0x1 -> 0x2, end unknown: 3, mispredicted 3" in words
    assert "outside -> 0x2, straight on to 0x5: 7, mispredicted 0" in words
    assert "0x1 -> outside, end unknown: 2, mispredicted 0" in words
    assert "from 0x2 straight on to 0x5: 100" in words


def test_counts_of_one_file_are_kept_as_they_are() -> None:
    one = counts_of(ROWS, build_id="aa", tallies={"samples_read": 3})
    again = merge([one])
    assert is_same(one, again)
    assert (again.build_id, again.tallies) == ("aa", {"samples_read": 3})
    assert again.tallies is not one.tallies


def test_tallies_add_up_and_one_build_id_is_enough() -> None:
    parts = [
        counts_of(ROWS, tallies={"samples_read": 3, "samples_mapped": 1}),
        counts_of(ROWS, build_id="aa", tallies={"samples_read": 4}),
    ]
    whole = merge(parts)
    assert whole.build_id == "aa"
    assert whole.tallies == {"samples_read": 7, "samples_mapped": 1}


def test_counts_of_two_builds_are_refused() -> None:
    with pytest.raises(ValueError, match="aa, bb"):
        merge([counts_of(ROWS, build_id="bb"), counts_of(ROWS, build_id="aa")])


small = st.integers(0, 3)
rows = st.lists(
    st.tuples(small, small, small, st.integers(0, 63), st.integers(0, 5), small), max_size=30
)


@given(rows, st.integers(1, 5), st.randoms())
def test_merging_parts_in_any_order_is_aggregating_the_whole(
    drawn: list[Row], pieces: int, shuffle: random.Random
) -> None:
    whole = counts_of(drawn)
    mixed = shuffle.sample(drawn, len(drawn))
    parts = [counts_of(mixed[i::pieces]) for i in range(pieces)]
    assert is_same(whole, merge(parts))
    halves = [merge(parts[:1]), merge([*parts[1:], counts_of([])])]
    assert is_same(whole, merge(halves))


@given(rows)
def test_sums_against_a_counter(drawn: list[Row]) -> None:
    counts = counts_of(drawn)
    branches: Counter[tuple[int, int, int]] = Counter()
    runs: Counter[tuple[int, int]] = Counter()
    for from_, to, end, known, count, _ in drawn:
        if count and known & BRANCH:
            both = known & (FROM | TO)
            branches[(from_ if known & FROM else 0), (to if known & TO else 0), both] += count
        if count and known & TO and known & END:
            runs[to, end] += count
    found = counts.branches()
    keys = zip(found.from_.tolist(), found.to.tolist(), found.known.tolist(), strict=True)
    assert dict(zip(keys, found.count.tolist(), strict=True)) == branches
    straight = counts.runs()
    ends = zip(straight.start.tolist(), straight.end.tolist(), strict=True)
    assert dict(zip(ends, straight.count.tolist(), strict=True)) == runs


@given(rows)
def test_grouping_against_a_dictionary(drawn: list[Row]) -> None:
    keys = [np.array([row[i] for row in drawn], np.uint64) for i in (0, 1)]
    values = [np.array([row[i] for row in drawn], np.uint64) for i in (4, 5)]
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for row in drawn:
        before = expected.get(row[:2], (0, 0))
        expected[row[:2]] = (before[0] + row[4], before[1] + row[5])
    unique, sums = sum_by(keys, values)
    found = list(zip(*(column.tolist() for column in unique), strict=True))
    assert found == sorted(expected)
    assert list(zip(*(column.tolist() for column in sums), strict=True)) == [
        expected[key] for key in found
    ]


def test_counts_without_tallies_are_counted_beside_those_with_tallies() -> None:
    """Else fewer branches would be said to be there than are written."""
    row: Row = (1, 2, 3, WHOLE, 5, 0)
    tallied = counts_of([row], tallies={"branches_read": 9, "branches_in_image": 5,
                                        "branches_in_image/outside": 4})  # fmt: skip
    merged = merge([tallied, counts_of([row, (7, 7, 7, WHOLE & ~BRANCH, 8, 0)])])
    assert merged.tallies == {"branches_read": 14, "branches_in_image": 10,
                              "branches_in_image/outside": 4}  # fmt: skip
    assert merged.branch_total() == 10
    assert merge([counts_of([row]), counts_of([row])]).tallies == {}


def test_unknown_predictions_add_up_by_trace_and_by_branch() -> None:
    rows: list[Row] = [(1, 2, 3, WHOLE, 5, 1), (1, 2, 3, WHOLE, 4, 0), (1, 2, 4, WHOLE, 7, 0)]
    columns = [np.array([row[i] for row in rows], np.uint64) for i in range(6)]
    unknown = np.array([2, 1, 7], np.uint64)
    counts = aggregate(*columns[:3], columns[3].astype(np.uint8), *columns[4:], unknown)
    assert counts.prediction_unknown.tolist() == [3, 7]
    assert counts.branches().prediction_unknown.tolist() == [10]
    assert merge([counts, counts_of(rows)]).prediction_unknown.tolist() == [3, 7]


def test_counts_without_any_misprediction_know_no_prediction() -> None:
    bare: Row = (0, 2, 3, TO | END, 9, 0)
    silent = with_unknown_predictions(counts_of([bare, (1, 2, 3, WHOLE, 5, 0)]))
    assert silent.prediction_unknown.tolist() == [0, 5]
    told = with_unknown_predictions(counts_of([(1, 2, 3, WHOLE, 5, 0), (1, 2, 4, WHOLE, 5, 1)]))
    assert told.prediction_unknown.tolist() == [0, 0]
