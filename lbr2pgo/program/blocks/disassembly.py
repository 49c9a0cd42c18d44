"""Instructions as BOLT's disassembler sees them (BOLT: BinaryFunction.cpp, disassemble)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from lbr2pgo.program.blocks.binary_functions import BinaryFunctions
from lbr2pgo.program.code.decode import gather
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ByteRanges, ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, place_of
from lbr2pgo.support.intervals import last_at_or_below, numbers_in
from lbr2pgo.support.tables import ascending, same_length, seal, taken
from lbr2pgo.support.threads import made_of_each


@dataclass(frozen=True, slots=True)
class Disassembly:
    """The instructions of some functions, n rows in address order."""

    functions: BinaryFunctions
    data: U8
    """Bytes of the functions, and padding."""
    address: ImageAddresses
    size: U8
    kind: U8
    """`Kind`"""
    target: ImageAddresses
    has_target: Bools
    function: I64
    """Row in `functions`."""
    offset: I64
    """Where in `data` the instruction's bytes are."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, *_COLUMNS)
        ascending(self, "address")

    def __len__(self) -> int:
        return len(self.address)

    def at(self, addresses: PlacedAddresses) -> I64:
        """(m,): row of the instruction that starts at each address, -1 where none does."""
        return place_of(addresses, self.address)

    def take(self, rows: Bools) -> Disassembly:
        """Only the rows that are set."""
        return taken(self, rows, *_COLUMNS)

    def pieces(self) -> Iterator[Disassembly]:
        """All, of whole functions some at a time."""
        starts = np.flatnonzero(begins(self.function))
        cuts = starts[np.flatnonzero(np.diff(starts // _AT_ONCE, prepend=-1))].tolist()
        for first, past in pairwise([*(cuts or [0]), len(self)]):
            columns = {name: getattr(self, name)[first:past] for name in _COLUMNS}
            yield replace(self, **columns)

    def byte(self, at: int) -> U8:
        """(n,): a byte of each instruction, or of what is behind it."""
        return self.data[np.minimum(self.offset + at, len(self.data) - 1)]

    def code(self, row: int) -> bytes:
        """An instruction's bytes."""
        offset = int(self.offset[row])
        return self.data[offset : offset + int(self.size[row])].tobytes()

    def continues(self) -> Bools:
        """(n,): whether each instruction stands right behind the one before, in its function."""
        continues = np.zeros(len(self), np.bool_)
        behind = self.address[:-1] + self.size[:-1]
        continues[1:] = (self.address[1:] == behind) & (self.function[1:] == self.function[:-1])
        return continues

    def passing(self, rows: Bools) -> Disassembly:
        """The same, but that these rows (n,) let control pass."""
        return replace(self, kind=np.where(rows, np.uint8(Kind.OTHER), self.kind))

    def is_kind(self, *kinds: Kind) -> Bools:
        """(n,): whether the instruction is of one of these kinds."""
        among = np.zeros(len(Kind), np.bool_)
        among[list(kinds)] = True
        return among[self.kind]

    def branches(self) -> Bools:
        """(n,): direct branches and calls."""
        return self.is_kind(Kind.COND, Kind.JUMP, Kind.CALL) & self.has_target


_COLUMNS = tuple(c.name for c in fields(Disassembly) if c.name not in ("functions", "data"))


_AT_ONCE = 1 << 16
"""Instructions that a thread takes together, about."""


def disassembled(
    image: Image,
    functions: BinaryFunctions,
    table: InstructionTable,
    normalized: Callable[[Disassembly], Disassembly],
) -> Disassembly:
    """The instructions of `table` that lie in the body of a function, normalized.

    A jump just behind the function's end stands for unreachable code and becomes a `nop`.
    """
    following = np.concatenate((functions.start[1:], functions.end[-1:]))
    bodies = ByteRanges(functions.start, np.minimum(functions.end, following))
    first, past = (np.searchsorted(table.address, b) for b in (bodies.start, bodies.end))
    held = np.flatnonzero(first < past)
    group = np.cumsum((past - first)[held]) // _AT_ONCE

    def of(held: I64) -> Disassembly:
        rows, function = numbers_in(first[held], past[held]), np.repeat(held, (past - first)[held])
        code = _placed(image, functions, bodies.take(held), table.take(rows), function)
        return normalized(code.passing(_jumps_past_end(code)))

    parts = np.split(held, np.flatnonzero(np.diff(group)) + 1)
    return _joined(list(made_of_each(of, parts)))


def _placed(
    image: Image, functions: BinaryFunctions, bodies: ByteRanges, table: InstructionTable,
    function: I64,
) -> Disassembly:  # fmt: skip
    """Instructions, each in the body of a function."""
    data, bounds, pieces = gather(image, bodies)
    behind = np.array(bounds[:-1], np.uint64) - pieces  # wraps around, and back
    offset = table.address + behind[last_at_or_below(pieces, table.address)]
    return Disassembly(
        functions,
        data,
        image_addresses(table.address),
        table.size,
        table.kind,
        image_addresses(table.target),
        table.has_target,
        function,
        offset.astype(np.int64),
    )


def _joined(parts: Sequence[Disassembly]) -> Disassembly:
    """All of one part or more, of which each begins behind the one before it."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.data) for part in parts)]).tolist()
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in parts]) for name in _COLUMNS[:-1]
    }
    offset = [part.offset + start for part, start in zip(parts, before, strict=False)]
    data = np.concatenate([part.data for part in parts])
    return replace(parts[0], data=data, offset=np.concatenate(offset), **columns)


def _jumps_past_end(code: Disassembly) -> Bools:
    """Direct jumps to the padding right behind their function."""
    functions = code.functions
    end = functions.end[code.function]
    is_jump = code.is_kind(Kind.COND, Kind.JUMP) & code.has_target
    past: Bools = is_jump & (code.target == end)
    past &= end < functions.start[code.function] + functions.max_size[code.function]
    return past
