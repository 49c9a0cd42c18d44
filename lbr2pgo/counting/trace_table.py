"""Traces counted by run-time address, and what they are in the image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.counting._traces import count_traces, touching
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.borders import Borders, borders_of, merge
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.key_table import KNOWN_BITS, KeyTable
from lbr2pgo.native.walk import Reason, Stacks
from lbr2pgo.support.addresses import (
    RuntimeAddresses,
    placed_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass


def stacks_of(batch: BranchStacks, spaces: I64, kinds: U8, bounds: U64) -> Stacks:
    """A batch as the loops want it, given each sample's space and `StackKind`."""
    return Stacks(batch.entries, batch.offsets, spaces, kinds, batch.weight, bounds)


Spans = Callable[[U64], FileSpans]
"""Adds to counts by file."""


@dataclass(frozen=True, slots=True)
class Far:
    """What samples are to an image that they do not touch, whichever it is."""

    tallies: U64
    """As in `TraceTable`."""
    by_file: U64


class TraceTable:
    """Counts traces by run-time address, as they come; memory grows with distinct ones only."""

    def __init__(self, spaces: AddressSpaces, files: MappedFiles | None = None) -> None:
        """Count in these spaces, and what lies outside the image for the files mapped there."""
        self.tallies: U64 = np.zeros(len(Reason), dtype=np.uint64)
        self._spaces = spaces
        self._table = KeyTable()
        self._files = files if files is not None and files.present else None
        self._by_file: U64 = files.counts() if files else np.zeros(0, np.uint64)

    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None:
        """Count a batch, given each sample's space (`AddressSpaces.spaces_of`) and `StackKind`."""
        spans = self.spans_of(batch, spaces)
        self._count(batch, spaces, kinds, self._spaces.bounds, spans)

    def add_near(
        self, batch: BranchStacks, spaces: I64, kinds: U8, far: Far, spans: Spans | None
    ) -> None:
        """The same of a batch of which it is known what it is to an image far from all of it.

        Only samples that touch this image are counted, instead of as if they were far from it.
        """
        bounds, near = self._spaces.bounds, np.empty_like(spaces)
        touching(stacks_of(batch, spaces, kinds, bounds), near)
        self._count(batch, near, kinds, bounds, spans)
        # Numbers wrap around on the way.
        taken = replace(batch, weight=-batch.weight)
        self._count(taken, near, kinds, np.zeros_like(bounds), spans)
        self.tallies += far.tallies
        self._by_file += far.by_file

    def far(self, batch: BranchStacks, spaces: I64, kinds: U8, spans: Spans | None) -> Far:
        """What a batch is to an image that no sample touches."""
        other = TraceTable(self._spaces, self._files)
        other._count(batch, spaces, kinds, np.zeros_like(self._spaces.bounds), spans)
        return Far(other.tallies, other._by_file)

    def spans_of(self, batch: BranchStacks, spaces: I64) -> Spans | None:
        """Where the samples of a batch had files mapped; the same for all images."""
        return None if self._files is None else self._files.spans_of(batch, spaces)

    def _count(
        self, batch: BranchStacks, spaces: I64, kinds: U8, bounds: U64, spans: Spans | None
    ) -> None:
        files = None if spans is None else spans(self._by_file)
        stacks = stacks_of(batch, spaces, kinds, bounds)
        count_traces(stacks, self._table, self.tallies, files)

    def merge(self, other: TraceTable) -> None:
        """Take over what another table of the same spaces counted."""
        self.tallies += other.tallies
        self._by_file += other._by_file
        self._table.add(*other._table.rows())

    def between_pieces(self) -> int:
        """Fall-throughs that start in one piece of the image and end in another: they are none."""
        keys, values = self._table.rows()
        rows = keys[:, 3] & np.uint64(TO | END) == np.uint64(TO | END)
        keys, values = keys[rows], values[rows]
        _, piece = self._spaces.to_pieces(_spaces_of(keys), runtime_addresses(keys[:, 1:3]))
        start, end = piece.T
        is_apart = (start != end) & (start >= 0) & (end >= 0)
        return int(values[is_apart, 0].sum())

    def counts(self) -> tuple[BranchCounts, int]:
        """As `Traces.counts`, of what was counted so far."""
        return self.traces().counts()

    def traces(self) -> Traces:
        """What was counted so far, laid over the image."""
        keys, values = self._table.rows()
        known = (keys[:, 3] & np.uint64((1 << KNOWN_BITS) - 1)).astype(np.uint8)
        is_branch = known & BRANCH != 0
        image, known = _translate(self._spaces, keys, known)
        ends = runtime_addresses(keys[:, :2])
        return Traces(ends, image, known, is_branch, values, self._files, self._by_file)


@dataclass(frozen=True, slots=True)
class Traces:
    """Distinct traces; columns of equal length n."""

    ends: RuntimeAddresses
    """(n, 2): of the branch."""
    image: U64
    """(n, 3): placed addresses of both, and of the run's end; 0 where they are not in the image."""
    known: U8
    """As in `BranchCounts`; 0 where nothing is in the image."""
    is_branch: Bools
    values: U64
    """(n, 3)"""
    files: MappedFiles | None
    outside: U64
    """Branches outside of the spans of `AddressSpaces.bounds`, by file."""

    def counts(self) -> tuple[BranchCounts, int]:
        """The counts in placed addresses, and how many branches turned out to lie outside.

        A branch is outside if the spans of `AddressSpaces.bounds` held it but no mapping did.
        """
        values = np.where(self.known[:, None] == 0, np.uint64(0), self.values)
        from_, to, end = placed_addresses(self.image).T
        late = int(self.values[self._late, 0].sum())
        return aggregate(from_, to, end, self.known, *values.T), late

    def by_file(self) -> dict[str, int]:
        """Branches outside the image by mapped file; nothing where no mapping was recorded."""
        if self.files is None:
            return {}
        by_file, late = self.outside.copy(), self._late
        np.add.at(by_file, self.files.of_addresses(self.ends[late, 0]), self.values[late, 0])
        return self.files.named(by_file)

    def borders(self) -> Borders:
        """Branches across the image's border, by the file that they come from or go to."""
        if self.files is None:
            return merge(())
        known = self.known & np.uint8(FROM | TO)
        rows = np.flatnonzero(self.is_branch & ((known == FROM) | (known == TO)))
        known = known[rows]
        inside = np.where(known == FROM, self.image[rows, 0], self.image[rows, 1])
        outside = np.where(known == FROM, self.ends[rows, 1], self.ends[rows, 0])
        file = self.files.of_addresses(outside)
        values = [*self.values[rows].T]
        return borders_of(placed_addresses(inside), known, file, values, self.files.names)

    @property
    def _late(self) -> Bools:
        late: Bools = self.is_branch & (self.known == 0)
        return late


def _spaces_of(keys: U64) -> I64:
    return (keys[:, 3] >> np.uint64(KNOWN_BITS)).astype(np.int64)


def _translate(spaces: AddressSpaces, keys: U64, known: U8) -> tuple[U64, U8]:
    """Image addresses (n, 3) of traces, and what is still known of them (n,).

    A run that starts and ends in different mappings of the image is no run.
    """
    image, piece = spaces.to_pieces(_spaces_of(keys), runtime_addresses(keys[:, :3]))
    mapped: Bools = piece >= 0
    lost = np.zeros(len(keys), dtype=np.uint8)
    lost |= np.where(mapped[:, 0], 0, FROM).astype(np.uint8)
    lost |= np.where(mapped[:, 1], 0, TO | END).astype(np.uint8)
    lost |= np.where(mapped[:, 2] & (piece[:, 2] == piece[:, 1]), 0, END).astype(np.uint8)
    left = known & ~lost
    tells = (left & BRANCH != 0) & (left & (FROM | TO) != 0) | (left & (TO | END) == TO | END)
    return image, np.where(tells, left, 0).astype(np.uint8)
