"""From an address to the DIEs around it: the interval map of a unit, and chains of DIEs.

The map is LLVM's, insertion by insertion (LLVM: DWARFUnit.cpp updateAddressDieMap): where ranges
nest, the innermost wins; where they overlap otherwise (folded code, damage), the outcome depends
on the order, so the order is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.dwarf_bytes import Int
from lbr2pgo.native.jit import compiled, compiled_leaf


@compiled_leaf
def _set_latest(tree: Any, key: Int) -> None:
    """Make `key` known to `_latest`."""
    i = key + 1
    while i < len(tree):
        tree[i] = max(tree[i], key + 1)
        i += i & -i


@compiled_leaf
def _latest(tree: Any, key: Int) -> Any:
    """The greatest known key that is not above `key`, -1 if there is none."""
    best = 0
    i = key + 1
    while i > 0:
        best = max(best, tree[i])
        i -= i & -i
    return best - 1


@compiled_leaf
def _insert_all(lows: Any, highs: Any, owners: Any, ends: Any, owner: Any, tree: Any) -> None:
    for i in range(len(lows)):
        low, high = lows[i], highs[i]
        if low == high:
            continue
        below = _latest(tree, low)
        if below >= 0 and low < ends[below]:
            if high < ends[below]:
                ends[high], owner[high] = ends[below], owner[below]
                _set_latest(tree, high)
            ends[below] = low
        ends[low], owner[low] = high, owners[i]
        _set_latest(tree, low)


@compiled
def build_map(lows: Any, highs: Any, owners: Any, keys: Int) -> Any:
    """Insert ranges in their order: (end of each key's interval, its owner or -1).

    Bounds are ranks among the `keys` sorted distinct addresses; (m,) i64 each. The interval of a
    key is [key, end). Keys are only ever added, so a Fenwick tree of maxima finds the one below.
    """
    ends = np.zeros(keys, np.int64)
    owner = np.full(keys, -1, np.int64)
    _insert_all(lows, highs, owners, ends, owner, np.zeros(keys + 1, np.int64))
    return ends, owner


@compiled_leaf
def _outer(die: Any) -> Any:
    """Row of the frame around a DIE, -1 if it is the outermost."""
    return np.int64(-1 if die.is_subprogram else die.parent)


@compiled_leaf
def _fill_offsets(leaves: Any, dies: Any, limit: Int, offsets: Any) -> Int:
    cut = 0
    for i in range(len(leaves)):
        row = leaves[i]
        length = 0
        while row >= 0 and length < limit:
            length += 1
            row = _outer(dies[row])
        cut += row >= 0
        offsets[i + 1] = offsets[i] + length
    return cut


@compiled
def chain_lengths(leaves: Any, dies: Any, limit: Int) -> Any:
    """Frames above and at each leaf row: ((n + 1,) i64 offsets, how many chains were cut).

    A chain ends at the first subprogram, as LLVM's does. A leaf of -1 has no frame.
    """
    offsets = np.zeros(len(leaves) + 1, np.int64)
    cut = _fill_offsets(leaves, dies, limit, offsets)
    return offsets, cut


@compiled_leaf
def _fill_rows(leaves: Any, dies: Any, offsets: Any, rows: Any) -> None:
    for i in range(len(leaves)):
        row = leaves[i]
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            rows[at] = row
            row = _outer(dies[row])


@compiled
def fill_chains(leaves: Any, dies: Any, offsets: Any) -> Any:
    """Rows of each leaf's chain, outermost first: (m,) i32."""
    rows = np.empty(offsets[-1], np.int32)
    _fill_rows(leaves, dies, offsets, rows)
    return rows
