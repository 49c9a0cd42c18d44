"""Sums and products of counts, which are 64 bits wide and must never wrap around."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import U64

_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


def exact_sum(counts: U64) -> int:
    """The sum of counts, however large.

    >>> exact_sum(np.array([2**64 - 1, 2], np.uint64)) == 2**64 + 1
    True
    """
    return (int((counts >> _HALF).sum()) << 32) + int((counts & _LOW).sum())
