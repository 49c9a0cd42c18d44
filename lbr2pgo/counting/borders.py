"""Branches across an image's border, by the file on the other side.

Counts know that an end of a branch is not in the image, and no more. Here is which mapped file it
lies in, or that it is in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.counting.mapped_files import UNKNOWN
from lbr2pgo.model.branch_counts import FROM, TO, Branches, sum_by
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.tables import Tabular, end_to_end, table


@table
class Borders(Tabular):
    """Columns of equal length n, unique by the first three."""

    address: PlacedAddresses
    """The end that is in the image."""
    known: U8
    """Which end that is: FROM or TO."""
    file: I64
    """Where the other one is, an index into `files`."""
    count: U64
    mispredicted: U64
    prediction_unknown: U64
    files: tuple[str, ...] = (UNKNOWN,)
    """The first one stands for none that is known."""


def borders_of(
    address: PlacedAddresses, known: U8, file: I64, values: Sequence[U64], files: tuple[str, ...]
) -> Borders:
    """From rows in any order; equal ones add up, and those of no known file are left out."""
    rows = file > 0
    keys, sums = sum_by(
        (address[rows], known[rows].astype(np.uint64), file[rows].astype(np.uint64)),
        [column[rows] for column in values],
    )
    columns = placed_addresses(keys[0]), keys[1].astype(np.uint8), keys[2].astype(np.int64)
    count, mispredicted, unknown = sums
    return Borders(*columns, count, mispredicted, unknown, files)


def merge(parts: Sequence[Borders]) -> Borders:
    """Add up those of several recordings, which number their files each in its own way."""
    numbers: dict[str, int] = {UNKNOWN: 0}
    file = [
        np.array([numbers.setdefault(name, len(numbers)) for name in part.files])[part.file]
        for part in parts
    ]
    names = ("address", "known", "count", "mispredicted", "prediction_unknown")
    address, known, *values = end_to_end(parts, *names)
    file_of = np.concatenate([np.zeros(0, np.int64), *file])
    return borders_of(
        placed_addresses(address), known.astype(np.uint8), file_of, values, (*numbers,)
    )


def told_apart(branches: Branches, borders: Borders) -> tuple[Branches, I64]:
    """The branches, those across the border by file; and of each the row that it came from.

    >>> column = lambda *numbers: np.array(numbers, np.uint64)
    >>> ends = column(1, 3).astype(np.uint8)
    >>> branches = Branches(
    ...     column(16, 32), column(0, 64), ends, np.zeros(2, np.int64),
    ...     column(9, 5), column(2, 1), column(0, 0),
    ... )
    >>> libc = np.array([1])
    >>> known = Borders(column(16), ends[:1], libc, column(7), column(1), column(0), ("", "libc"))
    >>> split, row = told_apart(branches, known)
    >>> list(zip(*(each.tolist() for each in (split.from_, split.file, split.count, row))))
    [(16, 0, 2, 0), (16, 1, 7, 0), (32, 0, 5, 1)]
    """
    crossing = np.flatnonzero(np.isin(branches.known, (FROM, TO)))
    inside = np.where(branches.known == FROM, branches.from_, branches.to)[crossing]
    order = np.lexsort((inside, branches.known[crossing]))
    crossing, inside = crossing[order], inside[order]
    row = _rows_of(borders, inside, branches.known[crossing])
    there = np.flatnonzero(row >= 0)
    origin = np.concatenate([np.arange(len(branches)), crossing[row[there]]])
    file = np.concatenate([branches.file, borders.file[there]])
    columns = [
        _shared(getattr(branches, name), getattr(borders, name)[there], crossing[row[there]])
        for name in ("count", "mispredicted", "prediction_unknown")
    ]
    known, from_, to = (column[origin] for column in (branches.known, branches.from_, branches.to))
    kept = np.flatnonzero(columns[0])
    kept = kept[np.lexsort((file[kept], known[kept], to[kept], from_[kept]))]
    found = Branches(
        from_[kept], to[kept], known[kept], file[kept], *(column[kept] for column in columns)
    )
    return found, origin[kept]


def _rows_of(borders: Borders, inside: PlacedAddresses, known: U8) -> I64:
    """(n,): of each of the borders its row among those ends, -1 where there is none.

    Ends are ordered by what is known, then by address.
    """
    found = np.full(len(borders), -1)
    for bit in (FROM, TO):
        first, past = np.searchsorted(known, (bit, bit + 1)).tolist()
        mine = np.flatnonzero(borders.known == bit)
        at = np.searchsorted(inside[first:past], borders.address[mine])
        at = np.minimum(at, past - first - 1)
        if past > first:
            is_it = inside[first:past][at] == borders.address[mine]
            found[mine] = np.where(is_it, at + first, -1)
    return found


def _shared(whole: U64, parts: U64, row: I64) -> U64:
    """What is left of each row when its parts are taken off, and then the parts."""
    taken = np.zeros(len(whole), np.uint64)
    np.add.at(taken, row, parts)
    return np.concatenate([whole - taken, parts])
