from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.native.row_ids import RowIds, RowSums

SMALL = st.integers(0, 3)
LARGE = st.integers(0, 2**64 - 1)
ROWS = st.lists(st.tuples(SMALL | LARGE, SMALL | LARGE, SMALL | LARGE))


def columns(rows, width: int):
    table = np.array(rows, np.uint64).reshape(-1, width)
    return [np.ascontiguousarray(column) for column in table.T]


@given(ROWS, ROWS)
def test_rows_are_numbered_in_the_order_in_which_they_come(first, second) -> None:
    ids = RowIds()
    known: dict[tuple[int, ...], int] = {}
    for rows in (first, second):
        found = ids.number_rows(*columns(rows, 3))
        assert found.tolist() == [known.setdefault(row, len(known)) for row in rows]
    assert list(map(tuple, ids.rows().tolist())) == list(known)
    assert len(ids) == ids.used == len(known)


def test_a_third_column_may_be_left_out() -> None:
    ids = RowIds()
    assert ids.number_rows(*columns([(1, 2), (1, 2), (2, 1)], 2)).tolist() == [0, 0, 1]
    assert ids.rows().tolist() == [[1, 2, 0], [2, 1, 0]]


def test_many_rows_keep_their_numbers_when_the_table_grows() -> None:
    count = 100_000
    column = np.arange(count, dtype=np.uint64) * np.uint64(0x1000)
    ids = RowIds()
    assert (ids.number_rows(column, column) == np.arange(count)).all()
    assert (ids.number_rows(column, column) == np.arange(count)).all()


@given(st.lists(st.tuples(SMALL, SMALL, LARGE, st.integers(0, 2**32))))
def test_counts_add_up_under_equal_rows(rows) -> None:
    sums = RowSums()
    sums.add_rows(*columns(rows, 4))
    wanted: Counter[tuple[int, ...]] = Counter()
    for *row, count in rows:
        wanted[tuple(row)] += count
    found = dict(zip(map(tuple, sums.rows().tolist()), sums.counts().tolist(), strict=True))
    assert found == wanted
    assert len(sums) == len(wanted)


@given(st.lists(st.tuples(SMALL, st.integers(0, 9), st.integers(0, 9), SMALL)))
def test_a_range_adds_to_each_of_its_numbers(ranges) -> None:
    sums = RowSums()
    a, first, last, count = columns(ranges, 4)
    sums.add_ranges(a, first.astype(np.int64), last.astype(np.int64), count)
    wanted: Counter[tuple[int, ...]] = Counter()
    for a_, first_, last_, count_ in ranges:
        for number in range(first_, last_ + 1):
            wanted[a_, number, 0] += count_
    found = dict(zip(map(tuple, sums.rows().tolist()), sums.counts().tolist(), strict=True))
    assert found == dict(wanted)


def test_rows_are_found_without_being_added() -> None:
    sums = RowSums()
    zero, one = np.zeros(1, np.uint64), np.ones(1, np.uint64)
    sums.add_rows(zero, one, zero, one)
    sums.add_rows(one, one, zero, one)
    both = np.concatenate((one, zero, one))
    found = sums.find_rows(both, np.concatenate((zero, one, one)), np.zeros(3, np.uint64))
    assert found.tolist() == [-1, 0, 1]
    assert len(sums) == 2
