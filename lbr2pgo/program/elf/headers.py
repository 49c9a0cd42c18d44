"""The headers of an ELF file: what it is, its load segments, its sections and its build-id.

Source: System V gABI, "ELF Header", "Section Header", "Program Header" and "Note Section".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.code import registry
from lbr2pgo.program.elf.file import File, not_elf
from lbr2pgo.program.elf.layout import Segment
from lbr2pgo.program.elf.names import Names, offsets_inside, refuse_overlaps
from lbr2pgo.support.addresses import LAST_ADDRESS, FileOffset, ImageAddress
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

SHT_SYMTAB, SHT_DYNSYM = 2, 11
_SHT_NULL, _SHT_NOTE, _SHT_NOBITS = 0, 7, 8
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1 << 1, 1 << 2, 1 << 11
_CODE = SHF_ALLOC | SHF_EXECINSTR

_CLASS_64, _LITTLE_ENDIAN = 2, 1
_PT_LOAD, _PT_NOTE, _PF_X = 1, 4, 1
_PN_XNUM = _SHN_XINDEX = 0xFFFF
_NT_GNU_BUILD_ID = 3

_MAGIC = b"\x7fELF"
_ELF_HEADER = Struct("<4sBB10xHHIQQQIHHHHHH")
_PROGRAM_HEADER = Struct("<IIQQQQQQ")
_SECTION_HEADER = Struct("<IIQQQQIIQQ")
_NOTE_HEADER = Struct("<III")

# Bounds of what a damaged file can make us do; real files stay far below.
_MOST_HEADERS = 1 << 18
_LONGEST_NAME_TABLE = 1 << 26
_MOST_NOTE_TABLES, _LONGEST_NOTE_TABLE = 64, 1 << 16


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; `link` and `entry_size` as its `sh_link` and `sh_entsize`."""

    name: str
    address: int
    size: int
    file_offset: int
    is_code: bool
    is_alloc: bool
    type: int
    is_compressed: bool
    link: int
    entry_size: int

    @property
    def is_stored(self) -> bool:
        """Whether it has bytes in the file."""
        return self.type != _SHT_NOBITS

    @property
    def file_end(self) -> int:
        """File offset behind the section."""
        return self.file_offset + self.size

    @property
    def end(self) -> int:
        """First address behind the section, at most the last address there is."""
        return min(self.address + self.size, LAST_ADDRESS)


@dataclass(frozen=True, slots=True)
class Headers:
    """What the headers and notes of a 64-bit little-endian ELF file say."""

    machine: int
    """`e_machine`"""
    kind: int
    """`e_type`"""
    segments: tuple[Segment, ...]
    """What is loaded into memory, by address, cut to what the file holds."""
    sections: tuple[Section, ...]
    """As in the file."""
    build_id: str | None
    """Lower-case hex, None if there is none."""
    health: Mapping[str, int]
    """What can't be used: a reason in words, and how many."""


class _ElfHeader(NamedTuple):
    """Fields of the ELF header, named as in the gABI without `e_`."""

    magic: bytes
    bits: int
    order: int
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int


class _ProgramHeader(NamedTuple):
    """Fields of a program header, named as in the gABI without `p_`."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class _SectionHeader(NamedTuple):
    """Fields of a section header, named as in the gABI without `sh_`."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


def read_headers(file: File) -> Headers:
    """Read all headers; raises InputError if the file is no such ELF file, or if it is cut."""
    header = _elf_header(file)
    programs = _program_headers(file, header)
    rows = _section_headers(file, header)
    loads = sorted((row for row in programs if _is_loaded(row)), key=lambda row: row.vaddr)
    names, nameless = _names(file, header, rows)
    return Headers(
        machine=header.machine,
        kind=header.type,
        segments=tuple(_segment(row, file.size) for row in loads),
        sections=tuple(map(_section, names, rows)),
        build_id=_build_id(file, programs, rows),
        health={
            "load segments past the end of the file": sum(_is_cut(s, file) for s in loads),
            "load segments that overlap": _overlaps(loads),
            "sections past the end of the file": sum(_is_outside(row, file) for row in rows),
            "load segments past the last address": sum(_wraps(s.vaddr, s.memsz) for s in loads),
            "sections past the last address": sum(_wraps(row.addr, row.size) for row in rows),
            "section names outside the string table": nameless,
            "section tables that say nothing of where or how long they are": int(
                bool(header.shoff) != bool(header.shnum)
            ),
        },
    )


def _shown(data: bytes) -> str:
    return data[: len(_MAGIC)].hex(" ") or "nothing"


def _elf_header(file: File) -> _ElfHeader:
    data = file.read(0, _ELF_HEADER.size)
    if data[: len(_MAGIC)] != _MAGIC:
        raise not_elf(file.path, f"it starts with {_shown(data)}, not with {_shown(_MAGIC)}")
    if len(data) < _ELF_HEADER.size:
        raise _cut(file, "the ELF header", _ELF_HEADER.size)
    header = _ElfHeader._make(_ELF_HEADER.unpack(data))
    if (header.bits, header.order) != (_CLASS_64, _LITTLE_ENDIAN):
        raise unsupported(file.path, "32-bit" if header.bits == 1 else "big-endian")
    return _with_large_counts(file, header)


def _with_large_counts(file: File, header: _ElfHeader) -> _ElfHeader:
    """The header with the numbers that are too large for it: the first section header has them."""
    are_large = header.shnum == 0, header.phnum == _PN_XNUM, header.shstrndx == _SHN_XINDEX
    if not header.shoff or not any(are_large):
        return header
    (row,) = _rows(file, "section", header.shoff, 1, _SECTION_HEADER.size, _SECTION_HEADER)
    first = _SectionHeader._make(row)
    return header._replace(
        shnum=first.size if are_large[0] else header.shnum,
        phnum=first.info if are_large[1] else header.phnum,
        shstrndx=first.link if are_large[2] else header.shstrndx,
    )


def _program_headers(file: File, header: _ElfHeader) -> list[_ProgramHeader]:
    place = header.phoff, header.phnum, header.phentsize
    return [*map(_ProgramHeader._make, _rows(file, "program", *place, _PROGRAM_HEADER))]


def _section_headers(file: File, header: _ElfHeader) -> list[_SectionHeader]:
    place = header.shoff, header.shnum, header.shentsize
    return [*map(_SectionHeader._make, _rows(file, "section", *place, _SECTION_HEADER))]


def _rows(
    file: File, what: str, start: int, count: int, entry_size: int, form: Struct
) -> Iterator[tuple[int, ...]]:
    """The headers of a table."""
    if not start or not count:
        return iter(())
    size = count * form.size
    if start + size > file.size:
        raise _cut(file, f"the {what} headers", start + size)
    if count > _MOST_HEADERS:
        raise not_elf(file.path, f"it says that it has {count:,} {what} headers")
    if entry_size != form.size:
        raise not_elf(file.path, f"its {what} headers are {entry_size} bytes long, not {form.size}")
    return form.iter_unpack(file.read(start, size))


def _is_loaded(row: _ProgramHeader) -> bool:
    return row.type == _PT_LOAD and row.memsz > 0


def _segment(row: _ProgramHeader, file_size: int) -> Segment:
    return Segment(
        address=ImageAddress(row.vaddr),
        file_offset=FileOffset(row.offset),
        file_size=max(0, min(row.filesz, row.memsz, file_size - row.offset)),
        memory_size=min(row.memsz, LAST_ADDRESS - row.vaddr),
        executable=bool(row.flags & _PF_X),
    )


def _is_cut(row: _ProgramHeader, file: File) -> bool:
    return row.offset + min(row.filesz, row.memsz) > file.size


def _overlaps(loads: Sequence[_ProgramHeader]) -> int:
    """How many segments begin before the one before them ends."""
    return sum(a.vaddr + a.memsz > b.vaddr for a, b in pairwise(loads))


def _section(name: str, row: _SectionHeader) -> Section:
    return Section(
        name=name,
        address=row.addr,
        size=row.size,
        file_offset=FileOffset(row.offset),
        is_code=row.flags & _CODE == _CODE,
        is_alloc=bool(row.flags & SHF_ALLOC),
        type=row.type,
        is_compressed=bool(row.flags & SHF_COMPRESSED),
        link=row.link,
        entry_size=row.entsize,
    )


def _is_outside(row: _SectionHeader, file: File) -> bool:
    return row.type not in (_SHT_NULL, _SHT_NOBITS) and row.offset + row.size > file.size


def _wraps(address: int, size: int) -> bool:
    return address + size > LAST_ADDRESS


def _names(file: File, header: _ElfHeader, rows: Sequence[_SectionHeader]) -> tuple[Names, int]:
    """Names of the sections, and how many of them are not in the table of names."""
    table = b""
    if header.shstrndx < len(rows) and rows[header.shstrndx].type != _SHT_NOBITS:
        row = rows[header.shstrndx]
        table = file.read(row.offset, min(row.size, _LONGEST_NAME_TABLE))
    offset = offsets_inside(np.array([row.name for row in rows], np.int64), table)
    refuse_overlaps(file.path, "sections", table, offset)
    return Names(table, offset), int((offset < 0).sum())


def _build_id(
    file: File, programs: Sequence[_ProgramHeader], rows: Sequence[_SectionHeader]
) -> str | None:
    """The description of the first note of that kind, in segments before sections."""
    tables = [(p.offset, p.filesz, p.align) for p in programs if p.type == _PT_NOTE]
    tables += [(s.offset, s.size, s.addralign) for s in rows if s.type == _SHT_NOTE]
    for offset, size, align in tables[:_MOST_NOTE_TABLES]:
        data = file.read(offset, min(size, _LONGEST_NOTE_TABLE))
        for name, kind, description in _notes(data, 8 if align == 8 else 4):
            if (name, kind) == (b"GNU\0", _NT_GNU_BUILD_ID):
                return description.hex() or None
    return None


def _notes(data: bytes, align: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, type and description of each note that is there in full."""
    at = 0
    while at + _NOTE_HEADER.size <= len(data):
        name_size, size, kind = _NOTE_HEADER.unpack_from(data, at)
        name = at + _NOTE_HEADER.size
        description = -(-(name + name_size) // align) * align
        at = -(-(description + size) // align) * align
        if description + size <= len(data):
            yield data[name : name + name_size], kind, data[description : description + size]


def unsupported(path: str, what: str) -> InputError:
    """The error that an ELF file is of a kind that can't be read."""
    return InputError(
        f"this ELF file is {what}",
        where=path,
        cure=f"Linked 64-bit little-endian files for {registry.NAMES} can be read.",
    )


def _cut(file: File, what: str, end: int) -> InputError:
    return InputError(
        f"the file is cut: {what} would end at {end:#x}",
        where=file.path,
        cure="Copy the binary again.",
    )
