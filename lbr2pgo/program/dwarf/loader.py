"""Sections of debug information, and the files that parts of it were moved to.

Split DWARF: DWARF 5, 7.3.2 and 7.3.5, and https://gcc.gnu.org/wiki/DebugFissionDWP for version 2;
LLVM: DWARFUnit.cpp parseDWO for where files are looked for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import numpy as np

from lbr2pgo.program.dwarf.section import ABSENT, DebugSection, SectionInMemory, StoredSection
from lbr2pgo.program.dwarf.unit import NO_PACKAGE, Dwarf
from lbr2pgo.program.elf.debug_files import open_sections, opened, stored
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import I64, Bytes
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError


def has_dwarf(image: Image) -> bool:
    """Whether a file holds DWARF, be it damaged."""
    names = {section.name for section in image.sections if section.is_stored}
    return not names.isdisjoint({".debug_info", ".zdebug_info"})


_NO_SUPPLEMENT = "supplementary debug files (dwz) that were not found"
_OTHER_SUPPLEMENT = "supplementary debug files (dwz) refused: their build-id is another"


def supplementary_file(
    image: Image, directories: tuple[Path, ...], problems: Counter[str]
) -> Image | None:
    """The file with what dwz moved out of a program's debug information, if it needs one.

    None, and counted among the problems, if it is not found or of another build.
    """
    name, checksum = _supplementary_link(image)
    if not name:
        return None
    paths = [Path(image.path).resolve().parent / name]
    paths += stored(checksum.hex(), directories)
    files = [found for path in paths if (found := opened(path)) is not None and has_dwarf(found)]
    for found in files:
        if _own_checksum(found) == checksum:
            return found
    problems[_OTHER_SUPPLEMENT if files else _NO_SUPPLEMENT] += 1
    return None


def _supplementary_link(image: Image) -> tuple[str, bytes]:
    """Path, relative to this file, and checksum of the supplementary one; empty if there is none.

    `.gnu_debugaltlink` is a path and a build-id.
    """
    link = image.section_data(".gnu_debugaltlink")
    if link is not None:
        name, _, build_id = link.partition(b"\0")
        return os.fsdecode(name), build_id
    is_supplementary, path, checksum = _debug_sup(image)
    return ("", b"") if is_supplementary else (path, checksum)


def _own_checksum(image: Image) -> bytes:
    """What those who refer to a supplementary file know it by."""
    is_supplementary, _, checksum = _debug_sup(image)
    return checksum if is_supplementary else bytes.fromhex(image.build_id or "")


def _debug_sup(image: Image) -> tuple[bool, str, bytes]:
    """Whether a file is a supplementary one, its path if not, and the checksum, of `.debug_sup`.

    The section has a version (u16), a flag, the path, and the length of a checksum
    (Source: DWARF 5, 7.3.6).
    """
    section = image.section_data(".debug_sup") or b""
    name, _, rest = section[3:].partition(b"\0")
    return section[2:3] == b"\1", os.fsdecode(name), rest[1 : 1 + rest[0]] if rest else b""


@dataclass
class SectionReader:
    """Finds sections of a file; nothing where one is absent or damaged, which is counted."""

    source: Image
    problems: Counter[str]
    pattern: str = ".debug_{}"

    def __call__(self, name: str) -> DebugSection:
        """The section whose name completes the pattern."""
        name = self.pattern.format(name)
        header = self.source.section(name)
        if header is not None and header.is_stored and not self.source.holds(header):
            self.problems["sections of debug info that go on behind the end of the file"] += 1
            return ABSENT
        if header is not None and header.is_stored and not header.is_compressed:
            return StoredSection(self.source.file, header.file_offset, header.size)
        try:
            view = self.source.section_view(name)
        except InputError:
            self.problems["sections of debug info that can't be unpacked"] += 1
            view = None
        return ABSENT if view is None else SectionInMemory(np.frombuffer(view, np.uint8))


_SPLIT_MISSING = "units whose split debug info (.dwo, .dwp) was not found"
_SPLIT_REFUSED = "units whose split debug info (.dwo, .dwp) was refused: it is of another build"


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
        is_other_build = False
        for dwarf in self._files(skeleton, name):
            units = dwarf.units
            has_id = (units["has_dwo_id"] != 0) & dwarf.is_compile_unit
            same = np.flatnonzero(has_id & (units["dwo_id"] == skeleton["dwo_id"]))
            if len(same):
                _share(skeleton, units[same[0]])
                return dwarf, int(same[0])
            is_other_build |= bool(has_id.any())
        self.problems[_SPLIT_REFUSED if is_other_build else _SPLIT_MISSING] += 1
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
    """The index of a `.dwp` file, `.debug_cu_index`: see `program.dwarf._units.read_units`.

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
