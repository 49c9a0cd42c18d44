"""Rows by their groups, against sorting them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lbr2pgo.profiles.llvm._groups import depth_first, grouped, order_groups
from lbr2pgo.support.texts import Texts

NAMES = ["b", "", "ab", "a", "a\xff"]


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_a_group_stay_in_their_order(seed: int) -> None:
    rng = random.Random(seed)
    group = [rng.randrange(-1, 6) for _ in range(rng.randrange(40))]
    rows, bounds = grouped(np.array(group, np.int64), 7)
    parts = [rows[bounds[i] : bounds[i + 1]].tolist() for i in range(7)]
    assert parts == [[row for row, own in enumerate(group) if own == i] for i in range(7)]


def test_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError):
        grouped(np.array([3]), 2)


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_ordered_by_numbers_then_by_the_bytes_of_names(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(40)
    group, first, second, name = (
        [rng.randrange(high) for _ in range(count)] for high in (3, 2, 2, len(NAMES))
    )
    first = [each * (2**64 - 1) for each in first]
    rows, bounds = grouped(np.array(group, np.int64), 3)
    columns = np.array(first, np.uint64), np.array(second, np.uint64), np.array(name, np.int64)
    order_groups(rows, bounds, *columns, Texts.of(NAMES))
    names = [NAMES[each].encode() for each in name]
    keys = list(zip(group, first, second, names, range(count), strict=True))
    assert rows.tolist() == sorted(range(count), key=keys.__getitem__)


@pytest.mark.parametrize("seed", range(10))
def test_a_forest_is_walked_downwards_first(seed: int) -> None:
    rng = random.Random(seed)
    parent = [rng.randrange(-1, row) if row else -1 for row in range(rng.randrange(40))]
    order, depth = depth_first(*grouped(np.array(parent, np.int64) + 1, len(parent) + 1))

    def walked(above: int, deep: int) -> list[tuple[int, int]]:
        below = [row for row, own in enumerate(parent) if own == above]
        return [each for row in below for each in ((row, deep), *walked(row, deep + 1))]

    assert list(zip(order.tolist(), depth.tolist(), strict=True)) == walked(-1, 0)
