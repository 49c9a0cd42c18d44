"""Instructions as BOLT's disassembler sees them.

It differs from an ordinary listing in three ways: `lock` is an instruction of its own, which
another branch may jump over; `int3` and the returns from system calls end no block; and a jump
just behind the function's end stands for unreachable code and becomes a `nop`
(LLVM: X86InstrInfo.td; BOLT: BinaryFunction.cpp, disassemble).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import I64, U8, U64, Bools

WINDOW = 16
"""Bytes kept of each instruction: none is longer."""

_LOCK, _INT3, _REX_W, _ADDRESS_SIZE = 0xF0, 0xCC, 0x48, 0x67
_TWO_BYTES, _SYSRET_SYSEXIT = 0x0F, (0x07, 0x35)
_LOOP_JCXZ = (0xE0, 0xE1, 0xE2, 0xE3)


@dataclass(frozen=True, slots=True)
class Lines:
    """The instructions of some functions, n rows in address order."""

    address: U64
    size: U8
    kind: U8
    target: U64
    has_target: Bools
    function: I64
    """Index into `BoltFunctions`."""
    bytes: U8
    """(n, WINDOW): the first bytes from each address on."""

    def __len__(self) -> int:
        return len(self.address)

    def at(self, addresses: U64) -> I64:
        """(m,): row of the instruction that starts at each address, -1 where none does."""
        if not len(self):
            return np.full(len(addresses), -1, np.int64)
        row = np.minimum(np.searchsorted(self.address, addresses), len(self) - 1)
        return np.where(self.address[row] == addresses, row, -1).astype(np.int64)

    def take(self, rows: Bools) -> Lines:
        """The table of the rows that are set."""
        return Lines(*(getattr(self, column.name)[rows] for column in fields(self)))

    def continues(self) -> Bools:
        """(n,): whether each instruction stands right behind the one before, in its function."""
        continues = np.zeros(len(self), np.bool_)
        behind = self.address[:-1] + self.size[:-1].astype(np.uint64)
        continues[1:] = (self.address[1:] == behind) & (self.function[1:] == self.function[:-1])
        return continues

    def is_kind(self, *kinds: Kind) -> Bools:
        """(n,): whether the instruction is of one of these kinds."""
        return np.isin(self.kind, kinds)


def read_lines(image: Image, functions: BoltFunctions, table: InstructionTable) -> Lines:
    """The instructions of `table` that lie in the body of a function."""
    function = functions.containing(table.address)
    rows = np.flatnonzero((function >= 0) & (table.address < functions.end[function]))
    first = _bytes_at(image, table.address[rows])
    lines = Lines(
        table.address[rows],
        table.size[rows].astype(np.uint8),
        table.kind[rows].astype(np.uint8),
        table.target[rows],
        table.has_target[rows].astype(np.bool_),
        function[rows],
        first,
    )
    if image.machine == "x86-64":
        lines = _split_locks(lines)
        lines.kind[_is_quiet(lines)] = Kind.OTHER
    lines.kind[_jumps_past_end(lines, functions)] = Kind.OTHER
    return lines


def uses_short_loop(lines: Lines) -> Bools:
    """(n,): `loop` and `jrcxz`, which BOLT can't move (BOLT: isUnsupportedInstruction)."""
    first = np.where(lines.bytes[:, 0] == _ADDRESS_SIZE, lines.bytes[:, 1], lines.bytes[:, 0])
    return lines.is_kind(Kind.COND) & np.isin(first, _LOOP_JCXZ)


def _bytes_at(image: Image, addresses: U64) -> U8:
    """(n, WINDOW): bytes from each address on, zeros behind the end of a segment."""
    window = np.zeros((len(addresses), WINDOW), np.uint8)
    for segment in image.layout.segments:
        skip = addresses - np.uint64(segment.address)
        rows = np.flatnonzero((addresses >= segment.address) & (skip < segment.file_size))
        if segment.executable and len(rows):
            stored = np.frombuffer(image.stored(segment.address, segment.file_size), np.uint8)
            padded = np.concatenate([stored, np.zeros(WINDOW, np.uint8)])
            window[rows] = sliding_window_view(padded, WINDOW)[skip[rows]]
    return window


def _split_locks(lines: Lines) -> Lines:
    """Make each `lock` prefix a row of its own."""
    rows = np.flatnonzero((lines.bytes[:, 0] == _LOCK) & (lines.size > 1))
    shifted = np.roll(lines.bytes[rows], -1, axis=1)
    lines.size[rows] -= 1
    locked_size = lines.size[rows].copy()
    lines.size[rows] = 1
    return Lines(
        np.insert(lines.address, rows + 1, lines.address[rows] + np.uint64(1)),
        np.insert(lines.size, rows + 1, locked_size),
        np.insert(lines.kind, rows + 1, np.uint8(Kind.OTHER)),
        np.insert(lines.target, rows + 1, np.uint64(0)),
        np.insert(lines.has_target, rows + 1, np.False_),
        np.insert(lines.function, rows + 1, lines.function[rows]),
        np.insert(lines.bytes, rows + 1, shifted, axis=0),
    )


def _is_quiet(lines: Lines) -> Bools:
    """Instructions that leave the straight line but end no block in BOLT."""
    first, second, third = lines.bytes[:, 0], lines.bytes[:, 1], lines.bytes[:, 2]
    system = (first == _TWO_BYTES) & np.isin(second, _SYSRET_SYSEXIT)
    wide = (first == _REX_W) & (second == _TWO_BYTES) & np.isin(third, _SYSRET_SYSEXIT)
    breakpoint_ = (first == _INT3) & (lines.size == 1)
    quiet: Bools = system | wide | breakpoint_
    return quiet


def _jumps_past_end(lines: Lines, functions: BoltFunctions) -> Bools:
    """Direct jumps to the padding right behind their function."""
    end = functions.end[lines.function]
    reach = functions.start[lines.function] + functions.reach[lines.function]
    is_jump = lines.is_kind(Kind.COND, Kind.JUMP) & lines.has_target
    past: Bools = is_jump & (lines.target == end) & (end < reach)
    return past
