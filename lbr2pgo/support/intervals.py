"""Many half-open intervals at once: which one a number is in, and the numbers in each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lbr2pgo.support import _search as native
from lbr2pgo.support.arrays import I64, Numbers, alike


def last_at_or_below(starts: Numbers, values: Numbers) -> I64:
    """Index of the last of (k,) ascending starts that is not above each of (n,), -1 if all are.

    >>> last_at_or_below(np.array([10, 20]), np.array([9, 10, 25]))
    array([-1,  0,  1])
    """
    return native.last_at_or_below(*alike(starts, values))


def first_at_or_above(ordered: Numbers, values: Numbers) -> I64:
    """Index of the first of (k,) ascending numbers that is not below each of (n,), k if all are.

    As `np.searchsorted`, in a fraction of the time where values ascend, or are near each other.

    >>> first_at_or_above(np.array([10, 20]), np.array([9, 10, 25]))
    array([0, 0, 2])
    """
    return native.first_at_or_above(*alike(ordered, values))


def interval_of(starts: Numbers, ends: Numbers, values: Numbers) -> I64:
    """Index of the half-open interval that holds each value, of any shape, -1 where none does.

    (k,) intervals by their starts; where they overlap, only the last that starts is asked.

    >>> interval_of(np.array([10, 20]), np.array([15, 30]), np.array([9, 10, 15, 29]))
    array([-1,  0, -1,  1])
    """
    return native.interval_of(*alike(starts, ends, values.ravel())).reshape(values.shape)


def offsets_of(lengths: npt.ArrayLike) -> I64:
    """Where each of (k,) pieces of these lengths begins, end to end, and where the last one ends.

    >>> offsets_of([3, 0, 2])
    array([0, 3, 3, 5])
    """
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def numbers_in(first: I64, past: I64) -> I64:
    """All numbers in all of (k,) half-open intervals, in their order.

    >>> numbers_in(np.array([3, 9, 5]), np.array([6, 9, 7])).tolist()
    [3, 4, 5, 5, 6]
    """
    sizes = past - first
    before = np.cumsum(sizes) - sizes
    numbers: I64 = np.arange(sizes.sum()) + np.repeat(first - before, sizes)
    return numbers
