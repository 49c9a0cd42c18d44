"""Sums and products of counts, compared with those of Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.support.sums import (
    LARGEST,
    TooManyError,
    add_at,
    exact_sum,
    multiplied,
    refuse_too_many,
    sums_of_groups,
)

NEAR = [0, 1, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
count = st.sampled_from(NEAR) | st.integers(0, LARGEST) | st.integers(0, 9)
counts = st.lists(count, max_size=9)


def u64(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


@given(counts)
def test_sums_are_exact(values: list[int]) -> None:
    assert exact_sum(u64(values)) == sum(values)


@given(st.lists(st.tuples(count, count)))
def test_products_end_at_the_largest_count(pairs: list[tuple[int, int]]) -> None:
    a, b = (u64([pair[i] for pair in pairs]) for i in range(2))
    assert multiplied(a, b).tolist() == [min(x * y, LARGEST) for x, y in pairs]


@given(st.lists(count, min_size=3, max_size=3), st.lists(st.tuples(st.integers(0, 2), count)))
def test_rows_end_at_the_largest_count(before: list[int], added: list[tuple[int, int]]) -> None:
    expected = list(before)
    for row, value in added:
        expected[row] += value
    sums = u64(before)
    add_at(sums, np.array([row for row, _ in added], np.int64), u64([v for _, v in added]))
    assert sums.tolist() == [min(each, LARGEST) for each in expected]


@given(st.lists(st.lists(count, min_size=1, max_size=4), min_size=1))
def test_groups_end_at_the_largest_count(groups: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, groups[:-1])])
    flat = u64([value for group in groups for value in group])
    assert sums_of_groups(flat, starts).tolist() == [min(sum(g), LARGEST) for g in groups]


@pytest.mark.parametrize("values", [[2**63], [2**62, 2**62], [2**64 - 1, 1], [2**64 - 1] * 3])
def test_what_adds_up_to_2_63_is_refused(values: list[int]) -> None:
    refuse_too_many(u64([2**62, 2**62 - 1]), u64([]))
    with pytest.raises(TooManyError, match="2\\*\\*63 or more"):
        refuse_too_many(u64([1]), u64(values))
