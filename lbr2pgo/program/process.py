"""`Process`: several images as one program, each with a slot of its own.

What is asked of a program works on all of its images at once: a call from one into another is a
call like any other. `support.addresses.in_file` gives the address in its own file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.program.dwarf.debug_info import CodeInfo, InlineFrames, Lines, Origin
from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import (
    SLOT_BITS,
    SLOT_SIZE,
    ImageAddress,
    ImageAddresses,
    PlacedAddress,
    PlacedAddresses,
    image_addresses,
    in_file,
    placed,
    slot_of,
    unplaced,
)
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import numbers_in

_OF_FRAMES = ("function", "line", "start_line", "discriminator", "file")
"""Columns of `InlineFrames`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One image of a process."""

    program: Program
    slot: int
    """0 for the program itself."""
    name: str
    """The file as it was recorded, without folders: stores by build-id have other names."""
    is_named: bool = False
    """Somebody asked for it."""


class Process(Program):
    """A program with its libraries; `image` and symbols by name are the program's."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Take parts with ascending slots, from 0 on."""
        super().__init__(parts[0].program.image)
        self.parts = tuple(parts)
        self._by_slot = {part.slot: part for part in parts}

    def part_of(self, address: PlacedAddress) -> Part:
        """The image that an address is of."""
        return self._by_slot[slot_of(address)]

    def file_of(self, address: PlacedAddress) -> tuple[Program, ImageAddress]:
        """The file that an address is of, and what it is there."""
        return self.part_of(address).program, in_file(address)

    def debug_info(self) -> CodeInfo:
        """As of one file, of whichever an address is."""
        return _JoinedDebugInfo(self.parts)

    @property
    def symbols(self) -> Symbols:
        """Those of the program itself."""
        return self.parts[0].program.symbols

    @cached_property
    def functions(self) -> Functions:
        """Functions that symbols of any image name."""
        return _joined(self.parts, [part.program.functions for part in self.parts])

    @cached_property
    def regions(self) -> Functions:
        """All code of all images."""
        return _joined(self.parts, [part.program.regions for part in self.parts])

    def _decode_new(self, regions: I64) -> InstructionTable:
        table = InstructionTable.empty()
        first = 0
        for part in self.parts:
            past = first + len(part.program.regions)
            own = regions[(regions >= first) & (regions < past)] - first
            if len(own):
                decoded = part.program._decode_new(own)
                table = table.merged(_placed(decoded, part.slot))
            first = past
        return table


def _placed(table: InstructionTable, slot: int) -> InstructionTable:
    address, target = (placed(image_addresses(c), slot) for c in (table.address, table.target))
    return replace(table, address=address, target=np.where(table.has_target, target, np.uint64(0)))


@dataclass(frozen=True)
class _JoinedFunctions(Functions):
    """Functions of several images, image by image; those without a name have the file's."""

    pieces: tuple[tuple[Part, Functions], ...] = field(default=(), repr=False)

    def _piece_of(self, function: int) -> tuple[Part, Functions, int]:
        for part, functions in self.pieces:
            if function < len(functions):
                return part, functions, function
            function -= len(functions)
        raise IndexError(function)

    @cached_property
    def name(self) -> Names:
        return Names.joined([functions.name for _, functions in self.pieces])

    def label(self, function: int) -> str:
        part, functions, row = self._piece_of(function)
        return functions.label(row) or f"{part.name}+{int(functions.start[row]):#x}"

    @cached_property
    def parent(self) -> I64:
        first = np.cumsum([0, *(len(functions) for _, functions in self.pieces)])
        each = (functions.parent for _, functions in self.pieces)
        return np.concatenate([a + b for a, b in zip(each, first, strict=False)])

    def aliases(self, function: int) -> tuple[str, ...]:
        _, functions, row = self._piece_of(function)
        return functions.aliases(row)

    def by_name(self, name: str) -> int | None:
        """As of one image; of equal names that of the first image."""
        first = 0
        for _, functions in self.pieces:
            row = functions.by_name(name)
            if row is not None:
                return first + row
            first += len(functions)
        return None


def _joined(parts: Sequence[Part], functions: Sequence[Functions]) -> Functions:
    pieces = tuple(zip(parts, functions, strict=True))
    start, end, entry = (
        np.concatenate([placed(getattr(each, name), part.slot) for part, each in pieces])
        for name in ("start", "end", "entry")
    )
    stubs = {
        address + part.slot * SLOT_SIZE: name
        for part, each in pieces
        for address, name in each.stubs.items()
    }
    return _JoinedFunctions(
        start, end, np.concatenate([each.symbol for each in functions]), entry,
        functions[0].symbols,
        stubs=stubs,
        pieces=pieces,
    )  # fmt: skip


class _JoinedDebugInfo:
    """The debug information of all images of a process."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple((part, part.program.debug_info()) for part in parts)

    @property
    def present(self) -> bool:
        return any(debug.present for _, debug in self._parts)

    @property
    def missing_reason(self) -> str:
        return self._parts[0][1].missing_reason  # libraries have none mostly

    def health(self) -> Mapping[str, int]:
        total: Counter[str] = Counter()
        for _, debug in self._parts:
            total.update(debug.health())
        return total

    def expect(self, addresses: PlacedAddresses) -> None:
        for debug, _, own in self._asked(addresses):
            debug.expect(own)

    def frames(self, addresses: PlacedAddresses) -> InlineFrames:
        answers = [(rows, debug.frames(own)) for debug, rows, own in self._asked(addresses)]
        lengths = np.zeros(len(addresses), np.int64)
        for rows, each in answers:
            lengths[rows] = np.diff(each.offsets)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        found = InlineFrames.none(0)
        numbers = {name: np.zeros(offsets[-1], getattr(found, name).dtype) for name in _OF_FRAMES}
        names, files = [""], [""]
        for rows, each in answers:
            at = numbers_in(offsets[rows], offsets[rows + 1])
            for name, column in numbers.items():
                column[at] = getattr(each, name)
            numbers["function"][at] += len(names)
            numbers["file"][at] += len(files)
            names += each.names
            files += each.files
        return InlineFrames(offsets, **numbers, names=tuple(names), files=tuple(files))

    def lines(self, addresses: PlacedAddresses) -> Lines:
        file = np.full(len(addresses), -1, np.int32)
        line, discriminator, column = np.zeros((3, len(addresses)), np.uint32)
        files: list[str] = []
        for debug, rows, own in self._asked(addresses):
            each = debug.lines(own)
            file[rows] = np.where(each.file < 0, -1, each.file + len(files))
            line[rows], discriminator[rows] = each.line, each.discriminator
            column[rows] = each.column
            files += each.files
        return Lines(file, line, discriminator, column, tuple(files))

    def origins(self, addresses: PlacedAddresses) -> dict[str, Origin]:
        found: dict[str, Origin] = {}
        for debug, _, own in self._asked(addresses):
            found |= debug.origins(own)
        return found

    def _asked(self, addresses: PlacedAddresses) -> Iterator[tuple[CodeInfo, I64, ImageAddresses]]:
        """Each image that addresses (n,) are of: which of them, and what they are there."""
        slots = addresses >> np.uint64(SLOT_BITS)
        for part, debug in self._parts:
            rows = np.flatnonzero(slots == part.slot)
            if len(rows):
                yield debug, rows, unplaced(addresses[rows], part.slot)
