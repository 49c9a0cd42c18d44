"""One ELF file: its layout, its sections and its bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Self

from lbr2pgo.program.code import registry
from lbr2pgo.program.code.architecture import Architecture
from lbr2pgo.program.elf.file import File, FileInMemory, StoredFile
from lbr2pgo.program.elf.headers import (
    SHT_SYMTAB,
    Headers,
    Section,
    read_headers,
    unsupported,
)
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.program.elf.modules import linked
from lbr2pgo.program.elf.packing import unpack, unpack_gnu
from lbr2pgo.program.elf.pe import as_elf
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_EXECUTABLE, _SHARED = 2, 3
_FILE_KINDS = {1: "an object file that is not linked yet", 4: "a core dump"}


@dataclass(frozen=True)
class Image:
    """A linked ELF file, open for reading."""

    layout: ImageLayout
    sections: tuple[Section, ...]
    """As in the file: a symbol's section number is an index of this."""
    file: File = field(repr=False)
    _header_health: Mapping[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a 64-bit little-endian executable, shared library or kernel module.

        Raises InputError if there is no such file, if it is something else, or if it is cut.
        """
        return cls._of(StoredFile(path))

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """As `open`, of an ELF file in memory; `path` is what messages call it."""
        return cls._of(FileInMemory(path, data))

    @classmethod
    def _of(cls, file: File) -> Self:
        file = as_elf(linked(file))
        headers = read_headers(file)
        architecture = registry.of_elf_machine(headers.machine, where=file.path)
        _refuse_others(file.path, headers)
        layout = ImageLayout(
            path=file.path,
            build_id=headers.build_id,
            machine=architecture.name,
            is_pie=headers.kind == _SHARED,
            segments=headers.segments,
        )
        return cls(layout, headers.sections, file, headers.health)

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
            return self.unpacked(section)
        old = self._by_name.get(name.replace(".debug_", ".zdebug_", 1))
        return self._unpacked(old, unpack_gnu) if old and name.startswith(".debug_") else None

    def unpacked(self, section: Section) -> memoryview | None:
        """A section's content, as `section_view` gives that of a name."""
        return self._unpacked(section, unpack if section.is_compressed else _as_it_is)

    def holds(self, section: Section) -> bool:
        """Whether all of a section's bytes are in the file."""
        return section.is_stored and section.file_end <= self.file.size

    def contents(self, section: Section) -> memoryview | None:
        """A section's bytes as they are in the file, None if it has none there."""
        is_held = self.holds(section)
        return self.file.view(section.file_offset, section.size) if is_held else None

    def strings(self, number: int) -> bytes:
        """The string table that is the section of this number; empty if there is none."""
        table = self.sections[number] if number < len(self.sections) else None
        if table is None or not self.holds(table):
            return b""
        return self.file.read(table.file_offset, table.size)

    def health(self) -> Mapping[str, int]:
        """What of the file can't be used: a reason in words, and how many."""
        return {reason: count for reason, count in self._header_health.items() if count}

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an image address, fewer where their segment ends, zeros in its .bss."""
        segment = self._segment_at(address)
        if segment is None or size <= 0:
            return b""
        stored = self.stored(address, size)
        left = segment.end - address - len(stored)
        return stored + bytes(min(size - len(stored), left))

    def stored(self, address: int, size: int) -> bytes:
        """As `read`, but only what the file holds."""
        segment = self._segment_at(address)
        if segment is None:
            return b""
        skip = address - segment.address
        start = segment.file_offset + skip
        return self.file.read(start, min(size, segment.file_size - skip))

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
        content = self.contents(section)
        if content is None:
            return None
        try:
            return method(content)
        except ValueError as error:
            raise InputError(
                f"section {section.name} {error}",
                where=f"{self.path}@{section.file_offset:#x}",
                cure="The file is damaged: copy or link it again.",
            ) from error


def _as_it_is(view: memoryview) -> memoryview:
    return view


def _refuse_others(path: str, headers: Headers) -> None:
    """Raise InputError for what is not linked."""
    if headers.kind not in (_EXECUTABLE, _SHARED):
        raise unsupported(path, _FILE_KINDS.get(headers.kind, f"of ELF type {headers.kind}"))
    if not headers.segments:
        raise InputError(
            "nothing of the file is ever loaded",
            where=path,
            cure="Name the program itself, not a file with only its debug information.",
        )
