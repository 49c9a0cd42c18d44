"""`.eh_frame`: which address ranges are functions to the unwinder, and where their LSDA lies.

Only what says where code is gets read, not the unwinding instructions. The format is that of the
LSB (Core, "Exception Frames") and of DWARF 5 section 6.4.1; pointer encodings are `DW_EH_PE_*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from struct import Struct

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import U64

OMIT = 0xFF
_PC_RELATIVE, _DATA_RELATIVE, _FUNCTION_RELATIVE, _ALIGNED = 0x10, 0x30, 0x40, 0x50
_FIXED = {
    0x0: Struct("<Q"), 0x2: Struct("<H"), 0x3: Struct("<I"), 0x4: Struct("<Q"),
    0xA: Struct("<h"), 0xB: Struct("<i"), 0xC: Struct("<q"),
}  # fmt: skip
_ULEB, _SLEB = 0x1, 0x9
_MASK = (1 << 64) - 1


class DamagedError(ValueError):
    """A table ends too early or uses an encoding that no compiler emits."""


@dataclass(slots=True)
class Cursor:
    """A place in a section, from which numbers are read; every read is checked."""

    data: bytes | memoryview
    address: int
    """Image address of the section."""
    at: int = 0

    def byte(self) -> int:
        """One byte."""
        self.at += 1
        if not 0 < self.at <= len(self.data):
            raise DamagedError("table ends too early")
        return self.data[self.at - 1]

    def uleb(self) -> int:
        """An unsigned LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & _MASK

    def sleb(self) -> int:
        """A signed LEB128."""
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def fixed(self, form: Struct) -> int:
        """A number of fixed size."""
        if self.at < 0 or self.at + form.size > len(self.data):
            raise DamagedError("table ends too early")
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return int(value)

    def pointer(self, encoding: int) -> int:
        """An encoded pointer; 0 stays 0 whatever it is relative to (`DW_EH_PE_*`)."""
        here = self.address + self.at
        form = encoding & 0x0F
        if form == _ULEB:
            value = self.uleb()
        elif form == _SLEB:
            value = self.sleb()
        elif form in _FIXED:
            value = self.fixed(_FIXED[form])
        else:
            raise DamagedError(f"pointer encoding {encoding:#x} is not known")
        base = encoding & 0x70
        if base not in (0, _PC_RELATIVE):
            raise DamagedError(f"pointer encoding {encoding:#x} is not known")
        return (value + here) & _MASK if base and value else value & _MASK


@dataclass(frozen=True, slots=True)
class Frames:
    """Ranges that frame description entries cover, by start; one for each start."""

    start: U64
    size: U64
    lsda: U64
    """Image address of the language-specific data area, 0 where there is none."""

    def index_at(self, address: int) -> int | None:
        """The entry that starts at an address."""
        at = int(np.searchsorted(self.start, np.uint64(address)))
        return at if at < len(self.start) and int(self.start[at]) == address else None


@dataclass(frozen=True, slots=True)
class _Common:
    """What a common information entry says of its frame description entries."""

    pointers: int = 0
    lsda: int = OMIT
    has_augmentation: bool = False


def read_frames(image: Image) -> Frames:
    """All frame description entries of `.eh_frame`; none if there is no such section.

    Where the section is damaged, the entries before the damage are used.
    """
    section = image.section(".eh_frame")
    view = image.section_view(".eh_frame")
    if section is None or view is None:
        return _table([])
    cursor = Cursor(bytes(view), section.address)
    rows: list[tuple[int, int, int]] = []
    try:
        rows.extend(_entries(cursor))
    except DamagedError:
        return _table(rows)
    return _table(rows)


def _table(rows: list[tuple[int, int, int]]) -> Frames:
    first = {start: (size, lsda) for start, size, lsda in reversed(rows) if start and size}
    starts = sorted(first)
    columns = [starts, [first[s][0] for s in starts], [first[s][1] for s in starts]]
    return Frames(*(np.array(column, np.uint64) for column in columns))


def _entries(cursor: Cursor) -> Iterator[tuple[int, int, int]]:
    """Start, size and LSDA of each entry, in file order."""
    commons: dict[int, _Common] = {}
    u32, u64 = Struct("<I"), Struct("<Q")
    while cursor.at + 4 <= len(cursor.data):
        length = cursor.fixed(u32)
        if length == 0:
            continue  # a terminator: linkers may put several inputs behind one another
        if length == 0xFFFFFFFF:
            length = cursor.fixed(u64)
        body = cursor.at
        end = body + length
        if end > len(cursor.data):
            raise DamagedError("entry ends behind the section")
        back = cursor.fixed(u32)
        if back == 0:
            commons[body] = _common(cursor)
        elif (common := _owner(commons, body - back)) is not None:
            yield _description(cursor, common)
        cursor.at = end


def _owner(commons: dict[int, _Common], at: int) -> _Common | None:
    """The common entry whose length field is at an offset (4 or 12 bytes before its body)."""
    return commons.get(at + 4, commons.get(at + 12))


def _common(cursor: Cursor) -> _Common:
    cursor.byte()  # version
    letters = ""
    while byte := cursor.byte():
        letters += chr(byte)
    cursor.uleb()  # code alignment
    cursor.sleb()  # data alignment
    cursor.uleb()  # return address register
    if not letters.startswith("z"):
        return _Common()
    cursor.uleb()
    pointers, lsda = 0, OMIT
    for letter in letters[1:]:
        if letter == "R":
            pointers = cursor.byte()
        elif letter == "L":
            lsda = cursor.byte()
        elif letter == "P":
            cursor.pointer(cursor.byte() & 0x7F)
    return _Common(pointers, lsda, True)


def _description(cursor: Cursor, common: _Common) -> tuple[int, int, int]:
    start = cursor.pointer(common.pointers)
    size = cursor.pointer(common.pointers & 0x0F)
    lsda = 0
    if common.has_augmentation and cursor.uleb() and common.lsda != OMIT:
        lsda = cursor.pointer(common.lsda & 0x7F)
    return start, size, lsda


def landing_pads(image: Image, start: int, size: int, lsda: int) -> tuple[list[int], bool]:
    """Addresses in a function where exceptions land; and whether one lies outside it.

    Reading stops at the first one outside, as BOLT does (BOLT: Exceptions.cpp, parseLSDA), and
    when there are more than the function has bytes.
    """
    pads: list[int] = []
    try:
        for pad in islice(_call_sites(image, start, lsda), size):
            if not start <= pad <= start + size:
                return pads, True
            pads.append(pad)
    except DamagedError:
        return pads, False
    return pads, False


def _call_sites(image: Image, start: int, lsda: int) -> Iterator[int]:
    """Landing pads of a call-site table, those of sites that have one."""
    section = next(
        (s for s in image.sections if s.is_alloc and s.address <= lsda < s.end and s.address), None
    )
    view = None if section is None else image.contents(section)
    if section is None or view is None:
        return
    cursor = Cursor(view, section.address, lsda - section.address)
    base_encoding = cursor.byte()
    base = start if base_encoding == OMIT else cursor.pointer(base_encoding)
    if cursor.byte() != OMIT:
        cursor.uleb()
    encoding = cursor.byte()
    end = cursor.uleb() + cursor.at
    while cursor.at < end:
        cursor.pointer(encoding)
        cursor.pointer(encoding)
        pad = cursor.pointer(encoding)
        cursor.uleb()
        if pad:
            yield base + pad
