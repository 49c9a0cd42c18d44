"""One ELF file: its layout, its sections and its bytes.

LIEF reads the headers and then goes: it holds a copy of the whole file. The bytes themselves
come from a memory map, so that only what is looked at costs memory.
"""

from __future__ import annotations

import mmap
import os
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from lbr2pgo.program.code import registry
from lbr2pgo.program.code.architecture import Architecture
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.program.elf.packing import unpack, unpack_gnu
from lbr2pgo.support.background import Background
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    import lief

SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS, SHT_DYNSYM = 2, 3, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1 << 1, 1 << 2, 1 << 11

_EXECUTABLE, _SHARED = 2, 3
_FILE_KINDS = {1: "an object file that is not linked yet", 4: "a core dump"}
_HEADER = Struct("<4sBB10xHHIQQQIHHHHHH")
_SECTION_TABLE = slice(40, 48)
"""Where the ELF header says where the section headers are."""
_SECTION_HEADER_SIZE = 64
_PROGRAM_HEADER_SIZE = 56


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
    def end(self) -> int:
        """First address behind the section."""
        return self.address + self.size


@dataclass(frozen=True)
class Image:
    """A linked ELF file, open for reading."""

    layout: ImageLayout
    sections: tuple[Section, ...]
    """As in the file: a symbol's section number is an index of this."""
    data: mmap.mmap | bytes = field(repr=False)
    """The whole file."""

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a 64-bit little-endian executable or shared library.

        Raises InputError if there is no such file, if it is something else, or if it is cut.
        """
        name, data = _map_checked(path)
        return cls._with(name, data, _read_headers(name, None, len(data)))

    @classmethod
    def opening(cls, path: str | Path) -> Callable[[], Self]:
        """As `open`, in two steps; the second one is to call what this returns.

        LIEF takes long to load: in between, it reads the file in another process. Where it, or
        all else that takes long, is loaded already, nothing happens before the second step.
        """
        name, data = _map_checked(path)
        if {"lief", "numba"} & sys.modules.keys():
            return lambda: cls._with(name, data, _read_headers(name, None, len(data)))
        headers = Background(_read_headers, name, None, len(data))
        return lambda: cls._with(name, data, headers.result())

    @classmethod
    def parse(cls, data: mmap.mmap | bytes, path: str) -> Self:
        """As `open`, of an ELF file in memory; `path` is what messages call it."""
        _check_header(path, data)
        return cls._with(path, data, _read_headers(path, bytes(data), len(data)))

    @classmethod
    def _with(cls, path: str, data: mmap.mmap | bytes, headers: _Headers) -> Self:
        machine, is_pie = _check_header(path, data)
        layout = ImageLayout(
            path=path,
            build_id=headers.build_id,
            machine=machine,
            is_pie=is_pie,
            segments=headers.segments,
        )
        if not layout.segments:
            raise InputError(
                "nothing of the file is ever loaded",
                where=path,
                cure="Name the program itself, not a file with only its debug information.",
            )
        return cls(layout, headers.sections, data)

    @property
    def path(self) -> str:
        """As it was opened."""
        return self.layout.path

    @property
    def machine(self) -> str:
        """Name of the architecture."""
        return self.layout.machine

    @property
    def architecture(self) -> Architecture:
        """All that depends on the kind of processor."""
        return registry.named(self.layout.machine)

    @property
    def build_id(self) -> str | None:
        """Lower-case hex, None if there is none."""
        return self.layout.build_id

    @property
    def is_pie(self) -> bool:
        """Whether the file may be loaded anywhere."""
        return self.layout.is_pie

    @property
    def has_dwarf(self) -> bool:
        """Whether the file itself holds DWARF."""
        return self.section_view(".debug_info") is not None

    @property
    def is_stripped(self) -> bool:
        """Whether the symbol table is gone; dynamic symbols may still be there."""
        return all(section.type != SHT_SYMTAB for section in self.sections)

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return self._by_name.get(name)

    def section_data(self, name: str) -> bytes | None:
        """A section's content, unpacked; None if there is none of that name in the file."""
        view = self.section_view(name)
        return None if view is None else bytes(view)

    def section_view(self, name: str) -> memoryview | None:
        """As `section_data`, without copying what was not packed.

        ``.debug_x`` also finds the ``.zdebug_x`` of older GNU tools. Raises InputError if the
        packed content is damaged, or if it would unpack to more than packing can have saved.
        """
        section = self._by_name.get(name)
        if section is not None:
            return (
                self._unpacked(section, unpack) if section.is_compressed else self.contents(section)
            )
        old = self._by_name.get(name.replace(".debug_", ".zdebug_", 1))
        return self._unpacked(old, unpack_gnu) if old and name.startswith(".debug_") else None

    def contents(self, section: Section) -> memoryview | None:
        """A section's bytes as they are in the file, None if it has none there."""
        end = section.file_offset + section.size
        if section.type == SHT_NOBITS or end > len(self.data):
            return None
        return memoryview(self.data)[section.file_offset : end]

    def health(self) -> Mapping[str, int]:
        """What of the file can't be used: a reason in words, and how many."""
        cut = sum(
            section.type != SHT_NOBITS and section.file_offset + section.size > len(self.data)
            for section in self.sections
        )
        has_table = any(self.data[_SECTION_TABLE])
        found = {
            "sections past the end of the file": cut,
            "section tables that say how long they are in an unusual way": int(
                has_table and not self.sections
            ),
        }
        return {reason: count for reason, count in found.items() if count}

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an image address, fewer where their segment ends, zeros in its .bss."""
        segment = self._segment_at(address)
        if segment is None or size <= 0:
            return b""
        stored = bytes(self.stored(address, size))
        left = segment.address + segment.memory_size - address - len(stored)
        return stored + bytes(min(size - len(stored), left))

    def stored(self, address: int, size: int) -> memoryview:
        """As `read`, but only what the file holds, and without copying it."""
        segment = self._segment_at(address)
        if segment is None:
            return memoryview(b"")
        skip = address - segment.address
        start = segment.file_offset + skip
        return memoryview(self.data)[start : start + max(0, min(size, segment.file_size - skip))]

    def let_go(self) -> None:
        """Give back the memory of what was looked at; the file is read again where need be."""
        if isinstance(self.data, mmap.mmap):
            self.data.madvise(mmap.MADV_DONTNEED)

    def _segment_at(self, address: int) -> Segment | None:
        at = bisect_right(self._segment_starts, address) - 1
        if at < 0:
            return None
        segment = self.layout.segments[at]
        return segment if address - segment.address < segment.memory_size else None

    @cached_property
    def _segment_starts(self) -> list[int]:
        return [segment.address for segment in self.layout.segments]

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    def _unpacked(
        self, section: Section, method: Callable[[memoryview], memoryview]
    ) -> memoryview | None:
        view = self.contents(section)
        if view is None:
            return None
        try:
            return method(view)
        except ValueError as error:
            raise InputError(
                f"section {section.name} {error}",
                where=f"{self.path}@{section.file_offset:#x}",
                cure="The file is damaged: copy or link it again.",
            ) from error


def _map_file(path: str) -> mmap.mmap:
    try:
        if not S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            raise _not_elf(path, "it is no regular file")
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror}", where=path, cure="Check the path of the binary."
        ) from error
    except ValueError as error:  # an empty file can't be mapped
        raise _not_elf(path, "it is empty") from error


def _map_checked(path: str | Path) -> tuple[str, mmap.mmap]:
    """The path as messages call it, and the file, which starts as one that can be read."""
    name = str(path)
    data = _map_file(name)
    _check_header(name, data)
    return name, data


def _check_header(path: str, data: mmap.mmap | bytes) -> tuple[str, bool]:
    """Machine, and whether the file may be loaded anywhere."""
    if data[:4] != b"\x7fELF":
        raise _not_elf(path, f"it starts with {data[:4]!r}")
    if len(data) < _HEADER.size:
        raise _cut(path, "the ELF header", _HEADER.size)
    header = _HEADER.unpack_from(data)
    bits, order, kind, machine = header[1:5]
    program_headers, section_headers = header[7:9]
    program_header_count, section_header_count = header[12], header[14]
    if (bits, order) != (2, 1):
        raise _unsupported(path, "32-bit" if bits == 1 else "big-endian")
    architecture = registry.of_elf_machine(machine, where=path)
    if kind not in (_EXECUTABLE, _SHARED):
        raise _unsupported(path, _FILE_KINDS.get(kind, f"of ELF type {kind}"))
    for name, start, size in (
        ("program", program_headers, program_header_count * _PROGRAM_HEADER_SIZE),
        ("section", section_headers, section_header_count * _SECTION_HEADER_SIZE),
    ):
        if start + size > len(data):
            raise _cut(path, f"the {name} headers", start + size)
    return architecture.name, kind == _SHARED


class _Headers(NamedTuple):
    """What LIEF reads."""

    build_id: str | None
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]


def _read_headers(path: str, data: bytes | None, size: int) -> _Headers:
    """Of `size` bytes in memory, or of a file."""
    with warnings.catch_warnings(action="ignore"):  # LIEF's, of types that it can't name
        binary = _parse(path, data)
        sections = tuple(_section(s) for s in binary.sections)
        return _Headers(_build_id(binary), _segments(binary, size), sections)


def _parse(path: str, data: bytes | None) -> lief.ELF.Binary:
    """Let LIEF read the headers and notes alone: relocations and symbols take it seconds."""
    import lief

    lief.logging.disable()
    config = lief.ELF.ParserConfig()
    for part in ("relocations", "overlay", "dyn_symbols", "symtab_symbols", "symbol_versions"):
        setattr(config, f"parse_{part}", False)
    binary = lief.ELF.parse(path if data is None else BytesIO(data), config)
    if binary is None:
        raise _not_elf(path, "its headers make no sense")
    return binary


def _build_id(binary: lief.ELF.Binary) -> str | None:
    import lief

    for note in binary.notes:
        if note.type == lief.ELF.Note.TYPE.GNU_BUILD_ID:
            return bytes(note.description).hex() or None
    return None


def _segments(binary: lief.ELF.Binary, file_size: int) -> tuple[Segment, ...]:
    """Load segments by address, cut to what the file holds."""
    import lief

    loads = [s for s in binary.segments if s.type == lief.ELF.Segment.TYPE.LOAD]
    segments = (
        Segment(
            address=s.virtual_address,
            file_offset=s.file_offset,
            file_size=max(0, min(s.physical_size, s.virtual_size, file_size - s.file_offset)),
            memory_size=s.virtual_size,
            executable=bool(int(s.flags) & 1),
        )
        for s in loads
    )
    return tuple(sorted(segments, key=lambda s: s.address))


def _section(section: Any) -> Section:
    name, flags = section.name, int(section.flags)
    return Section(
        name=name if isinstance(name, str) else name.decode("utf-8", "replace"),
        address=section.virtual_address,
        size=section.size,
        file_offset=section.file_offset,
        is_code=flags & (SHF_ALLOC | SHF_EXECINSTR) == SHF_ALLOC | SHF_EXECINSTR,
        is_alloc=bool(flags & SHF_ALLOC),
        type=int(section.type),
        is_compressed=bool(flags & SHF_COMPRESSED),
        link=section.link,
        entry_size=section.entry_size,
    )


def _not_elf(path: str, why: str) -> InputError:
    return InputError(
        f"not an ELF file: {why}",
        where=path,
        cure="Name the program or shared library that the profile was recorded on.",
    )


def _unsupported(path: str, what: str) -> InputError:
    return InputError(
        f"this ELF file is {what}",
        where=path,
        cure=f"Linked 64-bit little-endian files for {registry.NAMES} can be read.",
    )


def _cut(path: str, what: str, end: int) -> InputError:
    return InputError(
        f"the file is cut: {what} would end at {end:#x}",
        where=path,
        cure="Copy the binary again.",
    )
