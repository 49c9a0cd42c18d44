"""Files beside a program that hold its debug information, and their sections.

Source: GDB manual, "Debugging Information in Separate Files"; LLVM: Symbolize.cpp
lookUpDebuglinkObject, lookUpBuildIDObject. Split DWARF: DWARF 5, 7.3.2 and 7.3.5, and
https://gcc.gnu.org/wiki/DebugFissionDWP for version 2; LLVM: DWARFUnit.cpp parseDWO for where
files are looked for.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lbr2pgo.program.dwarf.section import ABSENT, Section, SectionInMemory, StoredSection
from lbr2pgo.program.dwarf.unit import NO_PACKAGE, Dwarf
from lbr2pgo.program.elf.file import File, StoredFile
from lbr2pgo.program.elf.headers import read_headers
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.arrays import I64, Bytes
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


@dataclass
class SectionReader:
    """Finds sections of a file; nothing where one is absent or damaged, which is counted."""

    source: Image
    problems: Counter[str]
    pattern: str = ".debug_{}"

    def __call__(self, name: str) -> Section:
        """The section whose name completes the pattern."""
        name = self.pattern.format(name)
        header = self.source.section(name)
        if header is not None and header.is_stored and not header.is_compressed:
            return StoredSection(self.source.file, header.file_offset, header.size)
        try:
            view = self.source.section_view(name)
        except InputError:
            self.problems["sections of debug info that can't be unpacked"] += 1
            view = None
        return ABSENT if view is None else SectionInMemory(np.frombuffer(view, np.uint8))


@dataclass
class SplitUnits:
    """Finds the split half of skeleton units, in the `.dwo` or `.dwp` file that holds it."""

    skeletons: Dwarf
    problems: Counter[str]
    _opened: dict[Path, Dwarf | None] = field(default_factory=dict)

    def find(self, unit: int) -> tuple[Dwarf, int] | None:
        """The file of a skeleton's other half, and its unit there.

        None if the unit is no skeleton, or if its other half can't be found.
        """
        skeleton = self.skeletons.units[unit]
        name = self.skeletons.text(skeleton["dwo_name"])
        if not skeleton["has_dwo_id"] or name is None:
            return None
        for dwarf in self._files(skeleton, name):
            units = dwarf.units
            is_same = (units["has_dwo_id"] != 0) & (units["dwo_id"] == skeleton["dwo_id"])
            same = np.flatnonzero(is_same & dwarf.is_compile_unit)
            if len(same):
                _share(skeleton, units[same[0]])
                return dwarf, int(same[0])
        self.problems["units whose split debug info (.dwo, .dwp) was not found"] += 1
        return None

    def _files(self, skeleton: np.void, name: str) -> Iterator[Dwarf]:
        """Files that may hold the other half: a package, where it was compiled, beside us."""
        compiled = Path(self.skeletons.text(skeleton["comp_dir"]) or "") / name
        beside = Path(self.skeletons.path).parent
        package = Path(f"{self.skeletons.path}.dwp")
        for path in dict.fromkeys([package, compiled, beside / name, beside / Path(name).name]):
            if path not in self._opened:
                self._opened[path] = self._read(path)
            found = self._opened[path]
            if found is not None:
                yield found

    def _read(self, path: Path) -> Dwarf | None:
        try:
            source = open_sections(path)
            if source is None:
                return None
            get = SectionReader(source, self.problems, ".debug_{}.dwo")
            index = SectionReader(source, self.problems)("cu_index")
            package = read_package(index.read(0, index.size))
            return Dwarf(str(path), get, skeleton=self.skeletons, package=package)
        except InputError:
            self.problems["files of split debug info that are damaged"] += 1
            return None


def _share(skeleton: np.void, unit: np.void) -> None:
    """Give a split unit, a row of the table of units, what only its skeleton says."""
    for name in ("addr_base", "has_low_pc", "low_pc"):
        unit[name] = skeleton[name]
    if unit["version"] < 5:
        unit["ranges_base"] = skeleton["gnu_ranges_base"]


# Columns of a package's index by their DW_SECT_*, which both versions have in common so far.
_PACKAGE_COLUMNS = {1: 0, 3: 1, 6: 2, 8: 3}


def read_package(section: Bytes) -> I64:
    """The index of a `.dwp` file, `.debug_cu_index`: see `native.dwarf_units.read_units`.

    No rows if there is none, or if it is damaged.
    """
    data = section.tobytes()
    if len(data) < 16:
        return NO_PACKAGE
    columns, units, slots = np.frombuffer(data, "<u4", 3, 4).tolist()
    table = 16 + 12 * slots
    if table + 4 * columns * (1 + 2 * units) > len(data):
        return NO_PACKAGE
    numbers = np.frombuffer(data, "<u4", columns * (1 + units), table).reshape(1 + units, columns)
    index = np.zeros((units, len(_PACKAGE_COLUMNS)), np.int64)
    for column, kind in enumerate(numbers[0].tolist()):
        if kind in _PACKAGE_COLUMNS:
            index[:, _PACKAGE_COLUMNS[kind]] = numbers[1:, column]
    return index[np.argsort(index[:, 0])]
