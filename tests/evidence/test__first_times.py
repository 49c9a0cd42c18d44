from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.evidence._first_times import note, note_stacks, number_branches
from lbr2pgo.native.row_ids import RowIds
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


@pytest.mark.parametrize("seed", range(10))
def test_branches_of_stacks_have_the_times_of_these(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [rng.randrange(5) for _ in range(rng.randrange(9))]
    offsets = np.cumsum([0, *lengths])
    entries = np.array([[rng.randrange(3), rng.randrange(3), 7] for _ in range(sum(lengths))])
    entries = entries.reshape(-1, 3).astype(np.uint64)
    owner = np.array([rng.randrange(-1, 2) for _ in lengths], np.int64)
    time = np.array([rng.randrange(4) for _ in lengths], np.uint64)
    known = RowIds()
    number = number_branches(offsets, entries, owner, known)
    seen: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for i, length in enumerate(lengths):
        for k in range(length if owner[i] >= 0 else 0):
            from_, to, _ = entries[offsets[i] + k].tolist()
            seen.setdefault((from_, to, int(owner[i])), []).append(
                (int(time[i]), 2 * (length - 1 - k))
            )
    assert [tuple(row) for row in known.rows().tolist()] == list(seen)
    first, step = np.full((2, len(seen)), np.iinfo(np.uint64).max)
    last = np.zeros(len(seen), np.uint64)
    note_stacks(number, offsets, time, first, step, last)
    assert list(zip(first.tolist(), step.tolist(), strict=True)) == [*map(min, seen.values())]
    assert last.tolist() == [max(times)[0] for times in seen.values()]


def test_stacks_that_are_not_there_are_an_error() -> None:
    entries, owner = np.zeros((1, 3), np.uint64), np.zeros(1, np.int64)
    with pytest.raises(IndexError):
        number_branches(np.array([0, 2]), entries, owner, RowIds())
    times = np.zeros((4, 1), np.uint64)
    with pytest.raises(IndexError):
        note_stacks(np.zeros(1, np.int64), np.array([0, 2]), *times)
