"""Traces counted by run-time address, and what they are in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces, rows_by
from lbr2pgo.counting.hash_table import KeyTable
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.arrays import I64, U8, U64, Bools

if TYPE_CHECKING:
    from lbr2pgo.native.traces import Stacks


def stacks_of(batch: BranchStacks, spaces: I64, modes: U8, bounds: U64) -> Stacks:
    """A batch as the loops want it, given each sample's space and mode."""
    from lbr2pgo.native.traces import Stacks

    return Stacks(batch.entries, batch.offsets, spaces, modes, batch.weight, bounds)


class TraceTable:
    """Counts traces by run-time address, as they come; memory grows with distinct ones only."""

    def __init__(self, spaces: AddressSpaces) -> None:
        from lbr2pgo.native import traces

        self.fates: U64 = np.zeros(traces.TALLIES, dtype=np.uint64)
        self._spaces = spaces
        self._bounds = spaces.bounds
        self._table = KeyTable()
        self._merged: tuple[TraceTable, ...] = ()

    def add(self, batch: BranchStacks, spaces: I64, modes: U8) -> None:
        """Count a batch, given each sample's space (`AddressSpaces.spaces_of`) and mode."""
        from lbr2pgo.native.traces import Table, count_stacks

        stacks = stacks_of(batch, spaces, modes, self._bounds)

        def fill(table: Table, first: int, used: int) -> tuple[int, int]:
            done: tuple[int, int] = count_stacks(stacks, table, self.fates, first, used)
            return done

        self._table.fill(fill, batch.offsets)

    def merge(self, other: TraceTable) -> None:
        """Take over what another table of the same spaces counted."""
        self.fates += other.fates
        self._merged += (other, *other._merged)

    def counts(self) -> tuple[BranchCounts, int]:
        """The counts in image addresses, and how many branches turned out to lie outside.

        A branch is outside if the spans of `AddressSpaces.bounds` held it but no mapping did.
        """
        from lbr2pgo.native import traces

        rows = [table._table.rows() for table in (self, *self._merged)]
        keys, values = map(np.concatenate, zip(*rows, strict=True))
        known = (keys[:, 3] & np.uint64(15)).astype(np.uint8)
        image = np.zeros((len(keys), 3), dtype=np.uint64)
        space = keys[:, 3] >> traces.KNOWN_BITS
        for number, at in rows_by(space):
            image[at], known[at] = _translate(self._spaces, number, keys[at], known[at])
        was_branch = keys[:, 3] & np.uint64(BRANCH) != 0
        outside = int(values[was_branch & (known == 0), 0].sum())
        known_values = np.where(known[:, None] == 0, np.uint64(0), values)
        from_, to, end = image.T
        counts = aggregate(from_, to, end, known, known_values[:, 0], known_values[:, 1])
        return counts, outside


def _translate(spaces: AddressSpaces, space: int, keys: U64, known: U8) -> tuple[U64, U8]:
    """Image addresses (n, 3) of traces of one space, and what is still known of them (n,).

    A run that starts and ends in different mappings of the image is no run.
    """
    image = np.zeros((len(keys), 3), dtype=np.uint64)
    piece = np.zeros((len(keys), 3), dtype=np.uint64)
    for column in range(3):
        image[:, column], piece[:, column] = spaces.to_image(space, keys[:, column])
    mapped: Bools = piece < len(spaces.pieces[space])
    lost = np.zeros(len(keys), dtype=np.uint8)
    lost |= np.where(mapped[:, 0], 0, FROM).astype(np.uint8)
    lost |= np.where(mapped[:, 1], 0, TO | END).astype(np.uint8)
    lost |= np.where(mapped[:, 2] & (piece[:, 2] == piece[:, 1]), 0, END).astype(np.uint8)
    left = known & ~lost
    tells = (left & BRANCH != 0) & (left & (FROM | TO) != 0) | (left & (TO | END) == TO | END)
    return image, np.where(tells, left, 0).astype(np.uint8)
