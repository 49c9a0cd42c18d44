from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.evidence._first_times import note
from lbr2pgo.support.arrays import U64

times = st.integers(0, 3)


def columns(rows: list[tuple[int, ...]]) -> list[U64]:
    return [np.array([row[i] for row in rows], np.uint64) for i in range(4)]


@given(st.lists(st.tuples(times, times, times, times), max_size=20))
def test_the_earliest_with_its_first_step_and_the_latest_are_kept(
    rows: list[tuple[int, ...]],
) -> None:
    first, step = np.full((2, 4), np.iinfo(np.uint64).max)
    last = np.zeros(4, np.uint64)
    number, *given = columns(rows)
    note(number.astype(np.int64), *given, first, step, last)
    for i in range(4):
        seen = [row[1:] for row in rows if row[0] == i]
        if seen:
            assert (first[i], step[i]) == min((early, at) for early, at, _ in seen)
        assert last[i] == max((late for _, _, late in seen), default=0)


def test_other_numbers_are_an_error() -> None:
    column = np.zeros(1, np.uint64)
    with pytest.raises(IndexError):
        note(np.array([1]), column, column, column, column.copy(), column.copy(), column.copy())
