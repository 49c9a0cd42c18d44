"""Sums and products of counts, which are 64 bits wide and never wrap around.

What is counted adds up to less than `LIMIT`, or it is refused: then no part of it can wrap, be it
signed or not. Only what counts a sample several times, as the total of a function does for each of
its instructions, can still become larger; such sums end at `LARGEST`, as LLVM's do (LLVM:
Support/MathExtras.h, SaturatingAdd, SaturatingMultiply).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.distinct import begins, order_of
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.intervals import last_at_or_below

Count = TypeVar("Count", I64, U64)
Counts = U64 | I64 | F64
LARGEST = 2**64 - 1
LIMIT = 2**63
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


class TooManyError(InputError):
    """Counts that add up to more than any tool reads."""

    def __init__(self, where: str | None = None) -> None:
        super().__init__(
            "the counts add up to 2**63 or more, which no tool reads",
            where=where,
            cure="Leave out what is damaged, or merge less.",
        )


def exact_sum(counts: U64) -> int:
    """The sum of counts, however large.

    >>> exact_sum(np.array([2**64 - 1, 2], np.uint64)) == 2**64 + 1
    True
    """
    if int(counts.max(initial=0)) * len(counts) <= LARGEST:  # as of all that is no damage
        return int(counts.sum())
    return (int((counts >> _HALF).sum()) << 32) + int((counts & _LOW).sum())


def overlap(a: Counts, b: Counts) -> float:
    """Sum of the minima of two distributions over the same keys; 1 if both are empty.

    >>> overlap(np.array([60, 30, 10]), np.array([5, 5, 0]))
    0.8
    """
    a_total, b_total = float(a.sum()), float(b.sum())
    if a_total == 0 or b_total == 0:
        return float(a_total == b_total)
    return float(np.minimum(a / a_total, b / b_total).sum())


def refuse_too_many(*columns: U64) -> None:
    """Raise TooManyError if the counts of any column add up to `LIMIT`."""
    if any(exact_sum(counts) >= LIMIT for counts in columns):
        raise TooManyError


def multiplied(counts: U64, factors: U64) -> U64:
    """Products (n,), at most `LARGEST`.

    >>> multiplied(np.array([3, 2**63], np.uint64), np.array([2, 2], np.uint64)).tolist()
    [6, 18446744073709551615]
    """
    most = np.uint64(LARGEST) // np.maximum(factors, np.uint64(1))
    return np.where(counts > most, np.uint64(LARGEST), counts * factors)


def add_at(sums: U64, rows: I64, counts: U64) -> None:
    """Add counts (n,) to the sums that stand at these rows, in place; at most `LARGEST` each.

    >>> sums = np.array([1, 2**64 - 2], np.uint64)
    >>> add_at(sums, np.array([1, 0, 1]), np.array([1, 7, 1], np.uint64)); sums.tolist()
    [8, 18446744073709551615]
    """
    if int(sums.max(initial=0)) + exact_sum(counts) <= LARGEST:
        np.add.at(sums, rows, counts)
        return
    low, high = sums & _LOW, sums >> _HALF
    np.add.at(low, rows, counts & _LOW)
    np.add.at(high, rows, counts >> _HALF)
    high += low >> _HALF
    sums[:] = np.where(high > _LOW, np.uint64(LARGEST), high << _HALF | low & _LOW)


def sums_at(places: I64, counts: Count, size: int) -> Count:
    """The sums (size,) of counts (n,) at their places; those at a place below 0 are in none.

    The sum of all must fit the counts' type, as those of a recording do.

    >>> sums_at(np.array([1, -1, 1]), np.array([2, 3, 4], np.uint64), 3).tolist()
    [0, 6, 0]
    """
    sums = np.zeros(size, counts.dtype)
    np.add.at(sums, places[places >= 0], counts[places >= 0])
    return sums


def sums_of_groups(counts: U64, starts: I64) -> U64:
    """The sum of each group of counts (n,) that begins at one of `starts` (m,), at most `LARGEST`.

    Starts ascend from 0.
    """
    if exact_sum(counts) <= LARGEST:
        return np.add.reduceat(counts, starts)
    sums = np.zeros(len(starts), np.uint64)
    add_at(sums, last_at_or_below(starts, np.arange(len(counts))), counts)
    return sums


def sums_of_pairs(one: I64, other: I64, counts: U64) -> tuple[I64, I64, U64]:
    """Each pair (n,) once, ordered, with the sum of its counts.

    >>> sums_of_pairs(np.array([2, 1, 2]), np.array([0, 5, 0]), np.array([3, 4, 5], np.uint64))
    (array([1, 2]), array([5, 0]), array([4, 8], dtype=uint64))
    """
    order = order_of(one, other)
    one, other = one[order], other[order]
    first = np.flatnonzero(begins(one, other))
    sums = np.add.reduceat(counts[order], first) if len(first) else counts
    return one[first], other[first], sums
