"""Files with what was split off a program: debug information, symbols, probes, block maps.

Only files of the same build are taken, as gdb does: names and lines of another would be wrong.
Source: GDB manual, "Debugging Information in Separate Files"; LLVM: Symbolize.cpp
lookUpDebuglinkObject, lookUpBuildIDObject. For stores by build-id see `program.elf.find`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from lbr2pgo.program.elf.file import File, StoredFile
from lbr2pgo.program.elf.find import debuginfod_cache, perf_store
from lbr2pgo.program.elf.headers import read_headers
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.program.elf.modules import linked
from lbr2pgo.support.errors import InputError

DEBUG_DIRECTORIES = (Path("/usr/lib/debug"),)
"""Where distributions put what they split off: in `.build-id/`, and as in the file system."""

_OTHER_BUILD = "separate debug files refused: their build-id or checksum is another"
_CHUNK = 1 << 20


class DebugFiles:
    """The files with what was split off a program, looked for once."""

    def __init__(self, image: Image, directories: tuple[Path, ...] = DEBUG_DIRECTORIES) -> None:
        self.image = image
        self.directories = directories

    def holder(self, holds: Callable[[Image], bool]) -> Image | None:
        """Of the program and these files the first that holds what is wanted, None if none does."""
        if holds(self.image):
            return self.image
        found, _ = self._found
        return next(filter(holds, found), None)

    def health(self) -> Mapping[str, int]:
        """What could not be used so far: a reason in words, and how many."""
        refused = self._found[1] if "_found" in vars(self) else 0
        return {_OTHER_BUILD: refused} if refused else {}

    @cached_property
    def _found(self) -> tuple[list[Image], int]:
        """Files of the same build, and how many are of another."""
        name, checksum = _debug_link(self.image)

        def is_same_build(found: Image) -> bool:
            return found.build_id == self.image.build_id

        def has_checksum(found: Image) -> bool:
            return (
                _crc32(StoredFile(found.path)) == checksum
            )  # as it is, also if it was linked here

        named, linked_to = map(_opened, (self._by_build_id(), self._by_name(name)))
        of_build = [*filter(is_same_build, named), *filter(has_checksum, linked_to)]
        return of_build, len(named) + len(linked_to) - len(of_build)

    def _by_build_id(self) -> Iterator[Path]:
        if self.image.build_id is not None:
            beside = Path(self.image.path).parent
            yield from stored(self.image.build_id, (beside, *self.directories))

    def _by_name(self, name: str) -> Iterator[Path]:
        if name:
            beside = Path(self.image.path).resolve().parent
            yield beside / name
            yield beside / ".debug" / name
            for directory in self.directories:
                yield directory / beside.relative_to("/") / name


def stored(build_id: str, directories: tuple[Path, ...]) -> Iterator[Path]:
    """Where a file with debug information may be stored by its build-id."""
    if len(build_id) > 2:
        for directory in directories:
            yield directory / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        yield perf_store(build_id) / "debug"
        yield debuginfod_cache() / build_id / "debuginfo"


def opened(path: Path) -> Image | None:
    """As `open_sections`; None for a damaged file, too."""
    try:
        return open_sections(path)
    except InputError:
        return None


def open_sections(path: Path) -> Image | None:
    """An ELF file for its sections alone, an object file too; None if there is none at `path`.

    Raises InputError if it is damaged.
    """
    try:
        file = linked(StoredFile(path))
    except InputError:
        return None
    headers = read_headers(file)
    return Image(ImageLayout(file.path, headers.build_id, "", False, ()), headers.sections, file)


def _opened(paths: Iterable[Path]) -> list[Image]:
    return [found for path in paths if (found := opened(path)) is not None]


def _crc32(file: File) -> int:
    checksum = 0
    for start in range(0, file.size, _CHUNK):
        checksum = zlib.crc32(file.read(start, _CHUNK), checksum)
    return checksum


def _debug_link(image: Image) -> tuple[str, int]:
    """File name and CRC-32 that `.gnu_debuglink` states; an empty name if there is none."""
    data = image.section_data(".gnu_debuglink") or b""
    name, _, _ = data.partition(b"\0")
    at = -(-(len(name) + 1) // 4) * 4
    if len(data) < at + 4 or b"/" in name:
        return "", 0
    return os.fsdecode(name), int.from_bytes(data[at : at + 4], "little")
