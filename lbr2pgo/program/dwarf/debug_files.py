"""Files beside a program that hold its debug information, and their sections.

Source: GDB manual, "Debugging Information in Separate Files"; LLVM: Symbolize.cpp
lookUpDebuglinkObject, lookUpBuildIDObject.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from lbr2pgo.program.elf.image import SHF_COMPRESSED, SHT_NOBITS, Image, Section
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

DEBUG_DIRECTORIES = (Path("/usr/lib/debug"),)
"""Where distributions put separate debug information."""


def open_sections(path: Path) -> Image | None:
    """An ELF file for its sections alone, an object file too; None if there is none at `path`.

    Raises InputError if it is damaged.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        if not S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            return None
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            sections = tuple(_sections(ELFFile(file)))
    except (OSError, ValueError) as error:
        del error  # absent, unreadable, empty, or a path with a NUL in it
        return None
    except ELFError as error:
        raise InputError(
            f"is damaged: {error}", where=str(path), cure="Build the program again."
        ) from error
    return Image(ImageLayout(str(path), None, "", False, ()), sections, data)


def _sections(file: ELFFile) -> Iterator[Section]:
    for number in range(file.num_sections()):
        section = file.get_section(number)
        header = section.header
        yield Section(
            name=section.name,
            address=header.sh_addr,
            size=header.sh_size,
            file_offset=header.sh_offset,
            is_code=False,
            is_alloc=False,
            type=SHT_NOBITS if header.sh_type == "SHT_NOBITS" else 1,
            is_compressed=bool(header.sh_flags & SHF_COMPRESSED),
            link=header.sh_link,
            entry_size=header.sh_entsize,
        )


def separate_debug_file(image: Image, directories: tuple[Path, ...]) -> Image | None:
    """The file with the debug information that was split off a program; None if there is none."""
    for path in _by_build_id(image, directories):
        found = _with_dwarf(path)
        if found is not None:
            return found
    name, checksum = _debug_link(image)
    for path in _by_name(image, name, directories):
        found = _with_dwarf(path)
        if found is not None and zlib.crc32(found.data) == checksum:
            return found
    return None


def _by_build_id(image: Image, directories: tuple[Path, ...]) -> Iterator[Path]:
    if image.build_id is not None and len(image.build_id) > 2:
        tail = Path(".build-id", image.build_id[:2], f"{image.build_id[2:]}.debug")
        for directory in (Path(image.path).parent, *directories):
            yield directory / tail


def _by_name(image: Image, name: str, directories: tuple[Path, ...]) -> Iterator[Path]:
    if name:
        beside = Path(image.path).resolve().parent
        yield beside / name
        yield beside / ".debug" / name
        for directory in directories:
            yield directory / beside.relative_to("/") / name


def _debug_link(image: Image) -> tuple[str, int]:
    """File name and CRC-32 that `.gnu_debuglink` states; an empty name if there is none."""
    data = image.section_data(".gnu_debuglink") or b""
    name, _, _ = data.partition(b"\0")
    at = -(-(len(name) + 1) // 4) * 4
    if len(data) < at + 4 or b"/" in name:
        return "", 0
    return os.fsdecode(name), int.from_bytes(data[at : at + 4], "little")


def names_supplementary_file(image: Image) -> bool:
    """Whether a file says that what it shares with others is in a file of its own (dwz)."""
    return bool(_supplementary_link(image)[0])


def supplementary_file(image: Image, directories: tuple[Path, ...]) -> Image | None:
    """The file with what dwz moved out of a program's debug information; None if not found."""
    name, build_id = _supplementary_link(image)
    beside = Path(image.path).resolve().parent
    paths = [beside / name]
    if len(build_id) > 1:
        tail = Path(".build-id", build_id.hex()[:2], f"{build_id.hex()[2:]}.debug")
        paths += [directory / tail for directory in directories]
    return next((found for path in paths if (found := _with_dwarf(path)) is not None), None)


def _supplementary_link(image: Image) -> tuple[str, bytes]:
    """Path and checksum that a file states, relative to its own; an empty path if none.

    `.gnu_debugaltlink` is a path and a build-id; `.debug_sup` has a version (u16), a flag that is
    0 in a file that refers to another, the path, and the length of a checksum
    (Source: DWARF 5, 7.3.6).
    """
    link = image.section_data(".gnu_debugaltlink")
    if link is None:
        link = image.section_data(".debug_sup") or b""
        if link[2:3] != b"\0":
            return "", b""
        name, _, rest = link[3:].partition(b"\0")
        return os.fsdecode(name), rest[1:]
    name, _, build_id = link.partition(b"\0")
    return os.fsdecode(name), build_id


def _with_dwarf(path: Path) -> Image | None:
    try:
        found = open_sections(path)
    except InputError:
        return None
    return found if found is not None and has_dwarf(found) else None


def has_dwarf(image: Image) -> bool:
    """Whether a file holds DWARF, be it damaged."""
    names = {section.name for section in image.sections if section.type != SHT_NOBITS}
    return not names.isdisjoint({".debug_info", ".zdebug_info"})
