"""Instructions as a table: where each one is, how long, what it does to control flow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Self

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.ranges import spread


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


_ENDS_LINE = (Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET, Kind.TRAP)


@dataclass(frozen=True, slots=True)
class Code:
    """Bytes of some ranges, laid one after another, and the instructions found in them."""

    data: U8
    """All bytes, and `PADDING` zeros behind them."""
    offset: I64
    """(n,): where in `data` each instruction starts."""
    size: U8
    """(n,)"""
    address: U64
    """(n,)"""


PADDING = 16
"""A decoder may look this far past an instruction's start without checking."""


@dataclass(frozen=True, slots=True)
class Flow:
    """How instructions pass control on; arrays of n rows."""

    kind: U8
    target: U64
    has_target: Bools


@dataclass(frozen=True)
class InstructionTable:
    """Instructions ordered by address; they do not overlap."""

    address: U64
    size: U8
    kind: U8
    """`Kind`"""
    target: U64
    """Where a direct branch or call goes; 0 where `has_target` is False."""
    has_target: Bools

    def __len__(self) -> int:
        return len(self.address)

    @cached_property
    def end(self) -> U64:
        """First address behind each instruction."""
        end: U64 = self.address + self.size
        return end

    @cached_property
    def ends_line(self) -> Bools:
        """Whether execution never goes on to the next instruction."""
        return np.isin(self.kind, _ENDS_LINE)

    @cached_property
    def run(self) -> I64:
        """A number that changes wherever the next instruction does not follow immediately."""
        starts_run = np.ones(len(self), dtype=bool)
        starts_run[1:] = self.address[1:] != self.end[:-1]
        return np.cumsum(starts_run, dtype=np.int64) - 1

    def index_of(self, addresses: U64) -> I64:
        """Row of the instruction that starts at each address, -1 where none does."""
        at = self.covering(addresses)
        return np.where((at >= 0) & (self.address[at] == addresses), at, -1) if len(self) else at

    def covering(self, addresses: U64) -> I64:
        """Row of the instruction that each byte belongs to, -1 where there is none."""
        if not len(self):
            return np.full(len(addresses), -1)
        at = np.searchsorted(self.address, addresses, side="right") - 1
        return np.where((at >= 0) & (addresses < self.end[at]), at, -1)

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        none, u8 = np.empty(0, np.uint64), np.empty(0, np.uint8)
        return cls(none, u8, u8, none, np.empty(0, np.bool_))

    def take(self, rows: I64) -> InstructionTable:
        """These rows, which are ordered."""
        return InstructionTable(
            self.address[rows],
            self.size[rows],
            self.kind[rows],
            self.target[rows],
            self.has_target[rows],
        )

    def within(self, starts: U64, ends: U64) -> InstructionTable:
        """The rows that start in these half-open ranges, which are ordered and disjoint."""
        first = np.searchsorted(self.address, starts)
        return self.take(spread(first, np.searchsorted(self.address, ends)))

    def merged(self, other: InstructionTable) -> InstructionTable:
        """The rows of both, which do not overlap."""
        both = InstructionTable(
            np.concatenate([self.address, other.address]),
            np.concatenate([self.size, other.size]),
            np.concatenate([self.kind, other.kind]),
            np.concatenate([self.target, other.target]),
            np.concatenate([self.has_target, other.has_target]),
        )
        return both.take(np.argsort(both.address, kind="stable"))


def decode(image: Image, starts: U64, ends: U64) -> InstructionTable:
    """Decode half-open address ranges, each by a linear sweep from its start.

    Bytes that are no instruction, and bytes that the file does not hold, leave a gap. Where
    ranges overlap, the one that starts first has the bytes.
    """
    decoder = _decoder(image)
    data, bounds, starts = _gather(image, starts, ends)
    offset, size = decoder.sweep(data, bounds)
    piece = np.searchsorted(bounds, offset, side="right") - 1
    address = starts[piece] + (offset - np.array(bounds)[piece]).astype(np.uint64)
    flow: Flow = decoder.flow(Code(data, offset, size, address))
    return InstructionTable(address, size, flow.kind, flow.target, flow.has_target)


def text(image: Image, start: int, end: int) -> Iterator[tuple[int, bytes, str]]:
    """Address, bytes and text of each instruction, in the syntax of the machine's objdump."""
    table = decode(image, np.array([start], np.uint64), np.array([end], np.uint64))
    write = _decoder(image).writer()
    for address, size in zip(table.address.tolist(), table.size.tolist(), strict=True):
        code = image.read(address, size)
        yield address, code, write(code, address)


def _decoder(image: Image) -> ModuleType:
    """Module of the image's machine, which has `sweep`, `flow` and `writer`."""
    name = "aarch64" if image.machine == "aarch64" else "x86"
    return import_module(f"lbr2pgo.program.code.{name}")


def _gather(image: Image, starts: U64, ends: U64) -> tuple[U8, list[int], U64]:
    """Bytes of all ranges with padding, the ranges' bounds in them, and their addresses."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    taken = np.maximum.accumulate(ends)[:-1] if len(ends) else ends
    starts = np.concatenate([starts[:1], np.maximum(starts[1:], taken)])
    kept = starts < ends
    starts, sizes = starts[kept], (ends - starts)[kept]
    pieces = [image.stored(a, n) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    bounds = np.cumsum([0, *map(len, pieces)]).tolist()
    data = np.frombuffer(b"".join([*pieces, bytes(PADDING)]), np.uint8)
    return data, bounds, starts
