"""Many intervals at once, against one at a time."""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import lbr2pgo
from lbr2pgo.support.intervals import first_at_or_above, interval_of, last_at_or_below, numbers_in

borders = st.lists(st.integers(0, 60), max_size=12, unique=True).map(sorted)


@given(borders, st.lists(st.integers(0, 70), max_size=20))
def test_the_interval_of_each_number(bounds: list[int], numbers: list[int]) -> None:
    starts, ends = bounds[0::2][: len(bounds) // 2], bounds[1::2]
    expected = [
        next((i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a <= n < b), -1)
        for n in numbers
    ]
    columns = (np.array(column, np.uint64) for column in (starts, ends, numbers))
    assert interval_of(*columns).tolist() == expected


def test_numbers_of_any_shape() -> None:
    starts, ends, numbers = np.array([2, 6]), np.array([4, 9]), np.array([[1, 3], [4, 8]])
    assert interval_of(starts, ends, numbers).tolist() == [[-1, 0], [-1, 1]]


@given(borders, st.lists(st.integers(0, 70), max_size=20))
def test_the_last_start_at_or_below(starts: list[int], numbers: list[int]) -> None:
    expected = [sum(start <= n for start in starts) - 1 for n in numbers]
    found = last_at_or_below(np.array(starts, np.uint64), np.array(numbers, np.uint64))
    assert found.tolist() == expected


@given(borders, st.lists(st.integers(0, 70), max_size=20))
def test_the_first_at_or_above(starts: list[int], numbers: list[int]) -> None:
    expected = [sum(start < n for start in starts) for n in numbers]
    found = first_at_or_above(np.array(starts, np.uint64), np.array(numbers, np.uint64))
    assert found.tolist() == expected


@given(st.lists(st.integers(0, 500), max_size=200).map(sorted), st.lists(st.integers(-1, 501)))
def test_places_far_from_each_other_are_found(ordered: list[int], numbers: list[int]) -> None:
    found = last_at_or_below(np.array(ordered, np.int64), np.array(numbers, np.int64))
    assert found.tolist() == [bisect_right(ordered, number) - 1 for number in numbers]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=9))
def test_all_numbers_of_all_intervals(pairs: list[tuple[int, int]]) -> None:
    first = np.array([start for start, _ in pairs], np.int64)
    past = np.array([start + size for start, size in pairs], np.int64)
    expected = [n for start, size in pairs for n in range(start, start + size)]
    assert numbers_in(first, past).tolist() == expected


def test_the_look_up_is_nowhere_written_again() -> None:
    package = Path(lbr2pgo.__file__).parent
    written = re.compile(r"""searchsorted\([^()]*(?:\([^()]*\)[^()]*)*side="right"\) - 1""")
    found = {
        str(path.relative_to(package)) for path in package.rglob("*.py")
        if written.search(path.read_text())
    }  # fmt: skip
    assert not found
