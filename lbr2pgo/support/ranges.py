"""Many ranges of rows at once."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import I64


def spread(first: I64, past: I64) -> I64:
    """All numbers of all half-open ranges, in their order.

    >>> spread(np.array([3, 9, 5]), np.array([6, 9, 7])).tolist()
    [3, 4, 5, 5, 6]
    """
    sizes = past - first
    before = np.cumsum(sizes) - sizes
    rows: I64 = np.arange(sizes.sum()) + np.repeat(first - before, sizes)
    return rows
