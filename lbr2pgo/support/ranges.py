"""Many half-open ranges at once."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import I64, U64


def spread(first: I64, past: I64) -> I64:
    """All numbers of all half-open ranges, in their order.

    >>> spread(np.array([3, 9, 5]), np.array([6, 9, 7])).tolist()
    [3, 4, 5, 5, 6]
    """
    sizes = past - first
    before = np.cumsum(sizes) - sizes
    rows: I64 = np.arange(sizes.sum()) + np.repeat(first - before, sizes)
    return rows


def covering(start: U64, end: U64, addresses: U64) -> I64:
    """(m,): row of the range that holds each address, -1 where none does.

    Ranges (n,) are ordered and disjoint.

    >>> a = np.array([1, 2, 5, 9], np.uint64)
    >>> covering(np.array([2, 8], np.uint64), np.array([5, 10], np.uint64), a).tolist()
    [-1, 0, -1, 1]
    """
    if not len(start):
        return np.full(len(addresses), -1, np.int64)
    at = np.searchsorted(start, addresses, side="right") - 1
    return np.where((at >= 0) & (addresses < end[at]), at, -1)
