"""The map from addresses to DIEs, against the plainest form of LLVM's."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.dwarf_dies import DIE
from lbr2pgo.native.dwarf_inlining import build_map, chain_lengths, fill_chains

Ranges = list[tuple[int, int]]


def insert_one_by_one(ranges: Ranges) -> dict[int, tuple[int, int]]:
    """(end, owner) by start: a sorted map into which each range is put, splitting the one below."""
    found: dict[int, tuple[int, int]] = {}
    for owner, (low, high) in enumerate(ranges):
        if low == high:
            continue
        starts = sorted(found)
        at = bisect_right(starts, low) - 1
        if at >= 0 and low < found[starts[at]][0]:
            below = starts[at]
            end, outer = found[below]
            if high < end:
                found[high] = (end, outer)
            found[below] = (low, outer)
        found[low] = (high, owner)
    return found


def built(ranges: Ranges) -> dict[int, tuple[int, int]]:
    keys = sorted({bound for pair in ranges for bound in pair})
    bounds = np.array([[keys.index(low), keys.index(high)] for low, high in ranges], np.int64)
    bounds = bounds.reshape(-1, 2)
    ends, owners = build_map(bounds[:, 0], bounds[:, 1], np.arange(len(ranges)), len(keys))
    return {
        keys[i]: (keys[end], owner)
        for i, (end, owner) in enumerate(zip(ends.tolist(), owners.tolist(), strict=True))
        if owner >= 0
    }


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=25))
def test_any_ranges_give_the_map_that_inserting_them_gives(ranges: Ranges) -> None:
    assert built(ranges) == insert_one_by_one(ranges)


@st.composite
def nested(draw: st.DrawFn) -> Ranges:
    """Ranges that nest, outer ones first."""
    ranges: Ranges = []

    def split(low: int, high: int, depth: int) -> None:
        ranges.append((low, high))
        at = low
        for _ in range(draw(st.integers(0, 3)) if depth < 4 else 0):
            start = draw(st.integers(at, high))
            at = draw(st.integers(start, high))
            if start < at:
                split(start, at, depth + 1)

    split(0, 100, 0)
    return ranges


@settings(deadline=None)  # the first call compiles
@given(nested())
def test_of_nested_ranges_the_innermost_wins(ranges: Ranges) -> None:
    found = built(ranges)
    starts = sorted(found)
    for address in range(100):
        innermost = max(i for i, (low, high) in enumerate(ranges) if low <= address < high)
        end, owner = found[starts[bisect_right(starts, address) - 1]]
        assert address < end
        assert owner == innermost


def dies(*parents: int, subprograms: tuple[int, ...] = (0,)) -> np.ndarray:
    rows = np.zeros(len(parents), DIE)
    rows["parent"] = parents
    rows["is_subprogram"][list(subprograms)] = True
    return rows


def chains(rows: np.ndarray, leaves: list[int], limit: int = 10) -> tuple[list[list[int]], int]:
    leaves_ = np.array(leaves, np.int64)
    offsets, cut = chain_lengths(leaves_, rows, limit)
    filled = fill_chains(leaves_, rows, offsets)
    return [part.tolist() for part in np.split(filled, offsets[1:-1])], cut


def test_chains_run_from_the_function_to_the_leaf() -> None:
    rows = dies(-1, 0, 1, 0)
    assert chains(rows, [2, -1, 0, 3]) == ([[0, 1, 2], [], [0], [0, 3]], 0)


def test_chains_end_at_the_first_function_around() -> None:
    rows = dies(-1, 0, 1, 2, subprograms=(0, 2))
    assert chains(rows, [3]) == ([[2, 3]], 0)


def test_chains_too_deep_are_cut_at_the_outer_end_and_counted() -> None:
    rows = dies(-1, 0, 1, 2)
    assert chains(rows, [3, 1, 0], limit=2) == ([[2, 3], [0, 1], [0]], 1)
