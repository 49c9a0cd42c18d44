"""Functions that the same starts need, side by side.

Where processes start in several ways, no order is the first one of all. Recursive halving brings
those together that the same traces need: Hoag, Lee, Mestre and Pupyrev, "Optimizing Function Layout
for Mobile Applications", LCTES 2023, and LLVM's llvm/lib/Support/BalancedPartitioning.cpp. Unlike
there, it is all one when a trace needs a function: what it has needed at last are page faults, and
functions of a page stay in the order in which they first ran.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.support.arrays import F64, I64, Bools
from lbr2pgo.support.tables import table, taken

_LEAF = 16
"""So few functions are a page or two: they stay in the order in which they came."""
_ROUNDS = 20
"""Of exchanges between two halves."""


@table
class _Needs:
    """Which functions are of which traces; (e,) each."""

    function: I64
    trace: I64
    weight: F64
    """Of the trace."""


def by_traces(functions: int, traces: Sequence[I64], weights: Sequence[float]) -> I64:
    """An order (n,) of functions, by the traces that need them and how much each of these counts.

    What traces don't tell apart stays in the order of `range(functions)`.

    >>> mixed = [np.arange(0, 64, 2), np.arange(1, 64, 2)]
    >>> by_traces(64, mixed, [1, 1]).tolist() == [*mixed[0].tolist(), *mixed[1].tolist()]
    True
    """
    lengths = [len(trace) for trace in traces]
    needs = _Needs(
        np.concatenate([np.zeros(0, np.int64), *traces]),
        np.repeat(np.arange(len(traces)), lengths),
        np.repeat(np.array(weights, np.float64), lengths),
    )
    bucket = np.zeros(functions, np.int64)
    while functions and np.bincount(bucket).max() > _LEAF:
        bucket = _halved(bucket, needs)
    return np.lexsort((np.arange(functions), bucket))


def _halved(bucket: I64, needs: _Needs) -> I64:
    """Each bucket as two, of which functions that are needed together share one."""
    size = np.bincount(bucket)
    is_split = (size > _LEAF)[bucket]
    need, told, count = _telling(bucket, is_split, needs)
    order = np.lexsort((np.arange(len(bucket)), ~_of_leading(bucket, need, told, count), bucket))
    is_right = np.zeros(len(bucket), np.bool_)
    is_right[order] = _places(bucket[order])[0] >= (size[bucket[order]] + 1) // 2
    is_right &= is_split
    for _ in range(_ROUNDS):
        moved = _exchanged(bucket, is_split, is_right, _gains(is_right, need, told))
        if not moved.any():
            break
        is_right ^= moved
    return 2 * bucket + is_right


def _telling(bucket: I64, is_split: Bools, needs: _Needs) -> tuple[I64, _Needs, I64]:
    """Needs (k,) that tell functions of a bucket apart, numbered by bucket and trace.

    What all of them are of, or one alone, doesn't. Last, how many functions each number (m,) has.
    """
    key = bucket[needs.function] * (needs.trace.max(initial=0) + 1) + needs.trace
    number, count = np.unique(key, return_inverse=True, return_counts=True)[1:]
    is_telling = is_split[needs.function] & (count[number] > 1)
    is_telling &= count[number] < np.bincount(bucket)[bucket[needs.function]]
    rows = np.flatnonzero(is_telling)
    return number[rows], taken(needs, rows), count


def _of_leading(bucket: I64, need: I64, told: _Needs, count: I64) -> Bools:
    """Which functions (n,) are of the trace that parts their bucket best: halves begin with it."""
    found = np.zeros(len(bucket), np.bool_)
    if not len(need):
        return found
    home = bucket[told.function]
    parted = told.weight * np.minimum(count[need], np.bincount(bucket)[home] - count[need])
    order = np.lexsort((need, -parted, home))
    first = order[np.flatnonzero(np.diff(home[order], prepend=-1))]
    leading = np.full(home.max() + 1, -1)
    leading[home[first]] = need[first]
    found[told.function[leading[home] == need]] = True
    return found


def _places(ascending: I64) -> tuple[I64, I64]:
    """The place (n,) of each among those with its number, and how many these are."""
    starts = np.flatnonzero(np.diff(ascending, prepend=-1))
    sizes = np.diff(np.append(starts, len(ascending)))
    return np.arange(len(ascending)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)


def _gains(is_right: Bools, need: I64, needs: _Needs) -> F64:
    """What moving each function (n,) to the other half is worth: needs that gather in one."""
    on_right = is_right[needs.function]
    right = np.bincount(need, on_right.astype(np.float64))
    left = np.bincount(need) - right
    here = np.where(on_right, right[need], left[need])
    there = np.where(on_right, left[need], right[need])
    gain = _gathered(here - 1) + _gathered(there + 1) - _gathered(here) - _gathered(there)
    return np.bincount(needs.function, gain * needs.weight, len(is_right)).astype(np.float64)


def _gathered(count: F64) -> F64:
    found: F64 = count * np.log2(count + 1)
    return found


def _exchanged(bucket: I64, is_split: Bools, is_right: Bools, gain: F64) -> Bools:
    """Which functions (n,) change halves: pairs of most gain, of each bucket a third of these.

    All of them at once would often only trade places.
    """
    rows = np.flatnonzero(is_split)
    half = 2 * bucket[rows] + is_right[rows]
    order = rows[np.lexsort((rows, -gain[rows], half))]
    place, _ = _places(2 * bucket[order] + is_right[order])
    # The same places of both halves are pairs.
    pair = np.lexsort((is_right[order], place, bucket[order]))
    first, second = order[pair[:-1]], order[pair[1:]]
    is_pair = (bucket[first] == bucket[second]) & (place[pair[:-1]] == place[pair[1:]])
    is_pair &= gain[first] + gain[second] > 1e-9
    first, second = first[is_pair], second[is_pair]
    rank, pairs = _places(bucket[first])
    chosen = rank < (pairs + 2) // 3
    moved = np.zeros(len(bucket), np.bool_)
    moved[first[chosen]] = moved[second[chosen]] = True
    return moved
