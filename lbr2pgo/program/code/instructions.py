"""Instructions as a table: where each one is, how long, what it does to control flow."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Self

import numpy as np

from lbr2pgo.support.addresses import ByteRanges, PlacedAddresses, placed_addresses, placed_array
from lbr2pgo.support.arrays import I32, I64, U8, Bools
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.intervals import last_at_or_below, numbers_in
from lbr2pgo.support.tables import Tabular, ascending, stacked, table, taken


class Kind(IntEnum):
    """What an instruction does to control flow."""

    OTHER = 0
    COND = 1
    """May jump to its target, may go on; transaction begins as well."""
    JUMP = 2
    INDIRECT_JUMP = 3
    CALL = 4
    INDIRECT_CALL = 5
    RET = 6
    """Returns of every kind, from interrupts and system calls too."""
    SYSCALL = 7
    """Enters the kernel and goes on behind it."""
    TRAP = 8
    """Never goes on: ud2, int3, hlt, brk."""


CALLS = (Kind.CALL, Kind.INDIRECT_CALL)
ENDS_LINE = (Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET, Kind.TRAP)
"""Behind these control does not go on."""


@table
class InstructionTable(Tabular):
    """Instructions ordered by address; they do not overlap."""

    address: PlacedAddresses
    size: U8
    kind: U8
    """`Kind`"""
    target: PlacedAddresses
    """Where a direct branch or call goes; 0 where `has_target` is False."""
    has_target: Bools

    def __post_init__(self) -> None:
        ascending(self, "address")

    @property
    def end(self) -> PlacedAddresses:
        """First address behind each instruction: worked out anew, for there may be many."""
        return placed_addresses(self.address + self.size)

    def end_of(self, rows: I64) -> PlacedAddresses:
        """First address behind each of these (n,)."""
        return placed_addresses(self.address[rows] + self.size[rows])

    @cached_property
    def ends_line(self) -> Bools:
        """Whether execution never goes on to the next instruction."""
        return np.isin(self.kind, ENDS_LINE)

    @cached_property
    def run(self) -> I32:
        """A number that changes wherever the next instruction does not follow immediately."""
        starts_run = np.zeros(len(self), dtype=bool)
        starts_run[1:] = np.diff(self.address) != self.size[:-1]
        return np.cumsum(starts_run, dtype=np.int32)

    def index_of(self, addresses: PlacedAddresses) -> I64:
        """Row of the instruction that starts at each address, -1 where none does."""
        return place_of(addresses, self.address)

    def covering(self, addresses: PlacedAddresses) -> I64:
        """Row of the instruction that each byte belongs to, -1 where there is none."""
        row = last_at_or_below(self.address, addresses)
        is_inside = row >= 0
        is_inside[is_inside] = addresses[is_inside] < self.end_of(row[is_inside])
        return np.where(is_inside, row, -1)

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        none, u8 = placed_array(()), np.empty(0, np.uint8)
        return cls(none, u8, u8, none, np.empty(0, np.bool_))

    @classmethod
    def joined(cls, tables: Sequence[InstructionTable]) -> InstructionTable:
        """The rows of one table or more, of which each begins behind the one before it."""
        if len(tables) == 1:
            return tables[0]
        return stacked(tables)

    def take(self, rows: I64) -> InstructionTable:
        """These rows, which are ordered."""
        return taken(self, rows)

    def within(self, ranges: ByteRanges) -> InstructionTable:
        """The rows that start in these ranges, which are ordered and disjoint."""
        first, past = (np.searchsorted(self.address, b) for b in (ranges.start, ranges.end))
        return self.take(numbers_in(first, past))

    def merged(self, other: InstructionTable) -> InstructionTable:
        """The rows of both, which do not overlap."""
        if not len(self) or not len(other):
            return self if len(self) else other
        address = np.concatenate([self.address, other.address])
        order = np.argsort(address, kind="stable")
        return InstructionTable(
            address[order],
            np.concatenate([self.size, other.size])[order],
            np.concatenate([self.kind, other.kind])[order],
            np.concatenate([self.target, other.target])[order],
            np.concatenate([self.has_target, other.has_target])[order],
        )
