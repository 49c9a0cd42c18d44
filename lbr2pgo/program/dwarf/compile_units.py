"""Compile units as they tell of themselves: which compiler made what, and where its source lies.

Profiles take lines from what is decoded in bulk (`dwarf.unit`). Here a program is looked at once,
with every form and version of DWARF that pyelftools knows.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from lbr2pgo.program.elf.file import File
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

_COMMAND_LINES = ".GCC.command.line"


@dataclass(frozen=True, slots=True)
class CompileUnit:
    """A compile unit, as its first entry tells of it; texts are empty where it says nothing."""

    offset: int
    """Of its header in `.debug_info`."""
    version: int
    """Of DWARF."""
    name: str
    """Path of the source, as the compiler was told."""
    directory: str
    """Where the compiler ran: where relative paths begin."""
    producer: str
    """The compiler; GCC adds its flags, clang does with `-grecord-command-line`."""
    language: str
    split_file: str
    """The `.dwo` file with the rest of it."""


def units(file: File) -> list[CompileUnit]:
    """The compile units of an ELF file, in the order of `.debug_info`; type units are none.

    Raises InputError if the file can't be read as DWARF.
    """
    from elftools.common.exceptions import ELFCompressionError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(_Stream(file))
        # The linker applied relocations; those that --emit-relocs kept would be applied twice.
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
        return [
            _unit(unit.cu_offset, unit["version"], unit.get_top_DIE())
            for unit in dwarf.iter_CUs()
            if unit.get_top_DIE().tag in ("DW_TAG_compile_unit", "DW_TAG_skeleton_unit")
        ]
    except (InputError, MemoryError):
        raise
    except ELFCompressionError as error:
        raise InputError(
            f"has debug information packed in a way that pyelftools can't unpack ({error})",
            where=file.path,
            cure="Unpack it: llvm-objcopy --decompress-debug-sections.",
        ) from error
    except Exception as error:  # what pyelftools meets in damaged sections has no common type
        raise InputError(
            f"has debug information that can't be read ({type(error).__name__}: {error})",
            where=file.path,
            cure="Look at it with llvm-dwarfdump --verify, and build it again.",
        ) from error


def _unit(offset: int, version: int, entry: DIE) -> CompileUnit:
    return CompileUnit(
        offset=offset,
        version=version,
        name=_text(entry, "DW_AT_name"),
        directory=_text(entry, "DW_AT_comp_dir"),
        producer=_text(entry, "DW_AT_producer"),
        language=_language(entry),
        split_file=_text(entry, "DW_AT_dwo_name") or _text(entry, "DW_AT_GNU_dwo_name"),
    )


def _text(entry: DIE, attribute: str) -> str:
    found = entry.attributes.get(attribute)
    value = b"" if found is None else found.value
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _language(entry: DIE) -> str:
    """`C++14`, say."""
    from elftools.dwarf.descriptions import describe_attr_value

    found = entry.attributes.get("DW_AT_language")
    if found is None:
        return ""
    _, _, name = describe_attr_value(found, entry, 0).partition("\t")  # as readelf: `33\t(C++14)`
    return name.strip("()") or f"language {found.value:#x}"


class _Stream(io.RawIOBase):
    """A `File` as what pyelftools reads: of large programs, only the sections that it asks for."""

    def __init__(self, file: File) -> None:
        self._file, self._at = file, 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(origin + offset, 0)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """No more than there is, whatever size a damaged header states: no room is made for it."""
        data = self._file.read(self._at, self._file.size if size < 0 else size)
        self._at += len(data)
        return data


def command_lines(image: Image) -> tuple[str, ...]:
    """What the compilers of units were told, where they kept it (`-frecord-gcc-switches`)."""
    kept = (image.section_data(_COMMAND_LINES) or b"").decode(errors="replace")
    return tuple(dict.fromkeys(filter(None, kept.split("\0"))))
