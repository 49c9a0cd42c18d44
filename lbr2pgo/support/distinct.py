"""Large arrays as sets of values."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.arrays import I64, Bools

Integer = TypeVar("Integer", bound=np.integer[Any])


def distinct(values: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Each of (n,) values once, ascending.

    `np.unique` hashes since NumPy 2.3, which takes a hundred times as long for a million addresses.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values)
    return ordered[begins(ordered)]


def distinct_pairs(first: I64, second: I64) -> tuple[I64, I64, I64]:
    """Each pair once, ascending, in two columns, and which of these each of (n,) is.

    Of 32 bits each, the second without a sign. `np.unique` compares rows byte by byte, which takes
    ten times as long.

    >>> [each.tolist() for each in distinct_pairs(np.array([3, -1, 3]), np.array([2, 9, 2]))]
    [[-1, 3], [9, 2], [1, 0, 1]]
    """
    pairs, place = np.unique(first << 32 | second, return_inverse=True)
    return pairs >> 32, pairs & 0xFFFFFFFF, place


def begins(*columns: npt.NDArray[Any]) -> Bools:
    """(n,): whether each row of columns of equal length differs from the row before it.

    >>> begins(np.array([1, 1, 2, 2]), np.array([5, 5, 5, 6]))
    array([ True, False,  True,  True])
    """
    is_first = np.zeros(len(columns[0]), np.bool_)
    is_first[:1] = True
    for column in columns:
        is_first[1:] |= column[1:] != column[:-1]
    return is_first


def among(values: npt.NDArray[Integer], ordered: npt.NDArray[Integer]) -> Bools:
    """(n,): whether each value is one of (m,) ascending ones.

    `np.isin` would sort all of both.

    >>> among(np.array([4, 1, 7]), np.array([1, 3, 7]))
    array([False,  True,  True])
    """
    return place_of(values, ordered) >= 0


def place_of(values: npt.NDArray[Integer], ordered: npt.NDArray[Integer]) -> I64:
    """(n,): where each value first stands among (m,) ascending ones, -1 where it does not.

    >>> place_of(np.array([4, 1, 7]), np.array([1, 3, 7, 7]))
    array([-1,  0,  2])
    """
    if not len(ordered):
        return np.full(len(values), -1)
    place = np.searchsorted(ordered, values)
    np.minimum(place, len(ordered) - 1, out=place)
    place[ordered[place] != values] = -1
    return place
