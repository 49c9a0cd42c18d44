"""Instructions as BOLT's disassembler sees them (BOLT: BinaryFunction.cpp, disassemble)."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from lbr2pgo.program.blocks.binary_functions import BinaryFunctions
from lbr2pgo.program.code.decode import gather
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ByteRanges, ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.intervals import last_at_or_below, numbers_in
from lbr2pgo.support.tables import ascending, same_length, seal, taken


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


def disassembled(image: Image, functions: BinaryFunctions, table: InstructionTable) -> Disassembly:
    """The instructions of `table` that lie in the body of a function.

    A jump just behind the function's end stands for unreachable code and becomes a `nop`.
    """
    following = np.concatenate((functions.start[1:], functions.end[-1:]))
    bodies = ByteRanges(functions.start, np.minimum(functions.end, following))
    first, past = (np.searchsorted(table.address, b) for b in (bodies.start, bodies.end))
    held = np.flatnonzero(first < past)
    rows = numbers_in(first[held], past[held])
    function = np.repeat(held, (past - first)[held])
    data, bounds, pieces = gather(image, bodies.take(held))
    piece = last_at_or_below(pieces, table.address[rows])
    offset = np.array(bounds)[piece] + (table.address[rows] - pieces[piece]).astype(np.int64)
    code = Disassembly(
        functions,
        data,
        image_addresses(table.address[rows]),
        table.size[rows],
        table.kind[rows],
        image_addresses(table.target[rows]),
        table.has_target[rows],
        function,
        offset,
    )
    return code.passing(_jumps_past_end(code))


def _jumps_past_end(code: Disassembly) -> Bools:
    """Direct jumps to the padding right behind their function."""
    functions = code.functions
    end = functions.end[code.function]
    is_jump = code.is_kind(Kind.COND, Kind.JUMP) & code.has_target
    past: Bools = is_jump & (code.target == end)
    past &= end < functions.start[code.function] + functions.max_size[code.function]
    return past
