"""Files beside a program that hold its debug information, and their sections.

Source: GDB manual, "Debugging Information in Separate Files"; LLVM: Symbolize.cpp
lookUpDebuglinkObject, lookUpBuildIDObject.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lbr2pgo.program.elf.file import File, StoredFile
from lbr2pgo.program.elf.headers import read_headers
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.errors import InputError

DEBUG_DIRECTORIES = (Path("/usr/lib/debug"),)
"""Where distributions put separate debug information."""

_CHUNK = 1 << 20


def open_sections(path: Path) -> Image | None:
    """An ELF file for its sections alone, an object file too; None if there is none at `path`.

    Raises InputError if it is damaged.
    """
    try:
        file = StoredFile(path)
    except InputError:
        return None
    layout = ImageLayout(file.path, None, "", False, ())
    return Image(layout, read_headers(file).sections, file)


def has_dwarf(image: Image) -> bool:
    """Whether a file holds DWARF, be it damaged."""
    names = {section.name for section in image.sections if section.is_stored}
    return not names.isdisjoint({".debug_info", ".zdebug_info"})


def separate_debug_file(
    image: Image,
    directories: tuple[Path, ...],
    is_wanted: Callable[[Image], bool] = has_dwarf,
) -> Image | None:
    """The file with what was split off a program and is wanted; None if there is none."""
    for path in _by_build_id(image, directories):
        found = _opened(path, is_wanted)
        if found is not None:
            return found
    name, checksum = _debug_link(image)
    for path in _by_name(image, name, directories):
        found = _opened(path, is_wanted)
        if found is not None and _crc32(found.file) == checksum:
            return found
    return None


def _crc32(file: File) -> int:
    checksum = 0
    for start in range(0, file.size, _CHUNK):
        checksum = zlib.crc32(file.read(start, _CHUNK), checksum)
    return checksum


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
    return next((found for path in paths if (found := _opened(path, has_dwarf)) is not None), None)


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


def _opened(path: Path, is_wanted: Callable[[Image], bool]) -> Image | None:
    try:
        found = open_sections(path)
    except InputError:
        return None
    return found if found is not None and is_wanted(found) else None
