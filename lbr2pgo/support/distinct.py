"""Large arrays as sets of values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lbr2pgo.support import _search as native
from lbr2pgo.support.arrays import I32, I64, U64, Bools, Numbers, alike

Integer = TypeVar("Integer", bound=np.integer[Any])


def distinct(values: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Each of (n,) values once, ascending.

    `np.unique` hashes since NumPy 2.3, which takes a hundred times as long for a million addresses.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values[begins(values)])  # equal ones are often neighbours
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


def distinct_rows(*keys: Numbers) -> tuple[I64, I64]:
    """Where each distinct row of the keys first stands, in their order, and the number of each row.

    Only the first key may be below 0.

    >>> distinct_rows(np.array([3, 3, 1, 3]), np.array([0, 0, 5, 0]))
    (array([2, 0]), array([1, 1, 0, 1]))
    """
    differs = begins(*keys)  # from its neighbour: code that stands together is often of one place
    row = np.flatnonzero(differs)
    order = order_of(*(key[row] for key in keys))
    is_first = begins(*(key[row[order]] for key in keys))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_first) - 1
    return row[order[is_first]], number[np.cumsum(differs) - 1]


def rows_by(numbers: I32 | I64 | U64) -> Iterator[tuple[int, I64]]:
    """Each number, and the rows (k,) in which it stands; in one pass, however many there are.

    >>> [(number, rows.tolist()) for number, rows in rows_by(np.array([7, 5, 7]))]
    [(5, [1]), (7, [0, 2])]
    """
    order = np.argsort(numbers, kind="stable")
    unique, starts = np.unique(numbers[order], return_index=True)
    yield from zip(unique.tolist(), np.split(order, starts)[1:], strict=True)


def roots_of(parent: I64) -> I64:
    """(n,): the end of the chain of parents of each; what ends one is its own parent.

    >>> roots_of(np.array([0, 0, 1, 3]))
    array([0, 0, 0, 3])
    """
    while not np.array_equal(further := parent[parent], parent):  # twice as far up each time
        parent = further
    return parent


def inverse(order: I64) -> I64:
    """(n,): the place of each row in an order of all of them.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def order_of(*keys: npt.NDArray[Any]) -> I64:
    """Rows (n,) in the order of their keys, of which the first counts most; equal ones stay.

    As `np.lexsort` of the keys turned around, in a fraction of the time: NumPy sorts numbers much
    faster than it finds their order. So as many keys as 64 bits hold are sorted as one number with
    the row behind them, the last keys first.

    >>> order_of(np.array([2, 1, 2, 2]), np.array([0, 5, -1, 0]))
    array([1, 2, 0, 3])
    """
    count = len(keys[0])
    order = np.arange(count, dtype=np.uint64)
    row_bits = max(count - 1, 0).bit_length()
    packed, used = np.zeros(count, np.uint64), 0
    for key, bits in chain.from_iterable(map(_parts, reversed(keys))) if count else ():
        if used + bits + row_bits > _BITS:
            order, packed, used = _sorted(order, packed, row_bits), np.zeros_like(packed), 0
        packed |= key << np.uint64(used)
        used += bits
    return _sorted(order, packed, row_bits).astype(np.int64)


_BITS = 64


def _parts(key: npt.NDArray[Any]) -> Iterator[tuple[U64, int]]:
    """A key from 0 on, and how many bits it has; in halves where it has many, the lower first."""
    numbers = key.astype(np.uint64)
    numbers -= np.uint64(int(key.min()) % (1 << _BITS))
    bits = int(numbers.max()).bit_length()
    if bits <= _BITS // 2:
        yield numbers, bits
        return
    yield numbers & np.uint64(0xFFFFFFFF), _BITS // 2
    yield numbers >> np.uint64(_BITS // 2), bits - _BITS // 2


def _sorted(order: U64, packed: U64, row_bits: int) -> U64:
    """The order by the packed keys of rows, those that are equal as they stand in `order`."""
    numbers = packed[order] << np.uint64(row_bits) | np.arange(len(order), dtype=np.uint64)
    numbers.sort()
    rows: U64 = order[numbers & np.uint64((1 << row_bits) - 1)]
    return rows


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
    return native.place_of(*alike(values, ordered))
