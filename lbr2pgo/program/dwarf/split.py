"""Split DWARF: the `.dwo` or `.dwp` file that holds what a skeleton unit stands for.

Source: DWARF 5, 7.3.2 and 7.3.5, and https://gcc.gnu.org/wiki/DebugFissionDWP for version 2;
LLVM: DWARFUnit.cpp parseDWO for where the files are looked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from lbr2pgo.native.dwarf_units import (
    COMP_DIR,
    DWO_NAME,
    GNU_DWO_NAME,
    GNU_RANGES_BASE,
    UT_SPLIT_TYPE,
    UT_TYPE,
)
from lbr2pgo.program.dwarf.container import CONTRIBUTION, Container, SectionReader
from lbr2pgo.program.dwarf.debug_files import open_sections
from lbr2pgo.support.arrays import Bytes, Records
from lbr2pgo.support.errors import InputError

# DW_SECT_*, the same in both versions for what is needed here.
_SECTIONS = {1: "info", 3: "abbrev", 6: "str_offsets", 8: "rnglists"}


@dataclass
class SplitUnits:
    """Finds the split half of skeleton units."""

    skeletons: Container
    problems: Counter[str]
    _opened: dict[Path, Container | None] = field(default_factory=dict)

    def find(self, unit: int) -> tuple[Container, int] | None:
        """The file of a skeleton's other half, and its unit there.

        None if the unit is no skeleton, or if its other half can't be found.
        """
        if not self._is_skeleton(unit):
            return None
        wanted = self.skeletons.units[unit]["dwo_id"]
        files = (self._package, *(self._open(path) for path in self._paths(unit)))
        for container in files:
            if container is None:
                continue
            units = container.units
            is_type = np.isin(units["kind"], (UT_TYPE, UT_SPLIT_TYPE))
            same = np.flatnonzero(units["has_dwo_id"] & (units["dwo_id"] == wanted) & ~is_type)
            if len(same):
                self._share(unit, units, int(same[0]))
                return container, int(same[0])
        self.problems["units whose split debug info (.dwo, .dwp) was not found"] += 1
        return None

    def _is_skeleton(self, unit: int) -> bool:
        """Whether a unit says that its DIEs are in another file."""
        return bool(self.skeletons.units[unit]["has_dwo_id"]) and self._name(unit) is not None

    def _share(self, unit: int, units: Records, at: int) -> None:
        """Give the split unit what only the skeleton says."""
        skeleton = self.skeletons.units[unit]
        for name in ("addr_base", "has_low_pc", "low_pc"):
            units[name][at] = skeleton[name]
        forms, values = (part[unit] for part in self.skeletons.roots)
        if units["version"][at] < 5 and forms[GNU_RANGES_BASE]:
            units["ranges_base"][at] = np.int64(values[GNU_RANGES_BASE])

    def _name(self, unit: int) -> str | None:
        is_new = self.skeletons.units[unit]["version"] >= 5
        return self.skeletons.root_text(unit, DWO_NAME if is_new else GNU_DWO_NAME)

    def _paths(self, unit: int) -> list[Path]:
        """Where the file may be: where it was compiled, else beside the program."""
        name = self._name(unit) or ""
        compiled = Path(self.skeletons.root_text(unit, COMP_DIR) or "") / name
        beside = Path(self.skeletons.path).parent
        return list(dict.fromkeys([compiled, beside / name, beside / Path(name).name]))

    @cached_property
    def _package(self) -> Container | None:
        return self._open(Path(f"{self.skeletons.path}.dwp"))

    def _open(self, path: Path) -> Container | None:
        if path not in self._opened:
            self._opened[path] = self._read(path)
        return self._opened[path]

    def _read(self, path: Path) -> Container | None:
        try:
            source = open_sections(path)
            if source is None:
                return None
            get = SectionReader(source, self.problems, ".debug_{}.dwo")
            index = SectionReader(source, self.problems)("cu_index")
            return Container.open_split(str(path), get, self.skeletons, read_package(index))
        except InputError:
            self.problems["files of split debug info that are damaged"] += 1
            return None


def read_package(section: Bytes) -> Records | None:
    """The index of a `.dwp` file, by unit: rows of `CONTRIBUTION`; None if it has none.

    `section` is `.debug_cu_index`.
    """
    data = section.tobytes()
    if len(data) < 16:
        return None
    columns, units, slots = np.frombuffer(data, "<u4", 3, 4).tolist()
    table = 16 + 12 * slots
    if table + 4 * columns * (1 + 2 * units) > len(data):
        return np.zeros(0, CONTRIBUTION)
    numbers = np.frombuffer(data, "<u4", columns * (1 + units), table).reshape(1 + units, columns)
    index = np.zeros(units, CONTRIBUTION)
    for column, kind in enumerate(numbers[0].tolist()):
        if kind in _SECTIONS:
            index[_SECTIONS[kind]] = numbers[1:, column]
    return index[np.argsort(index["info"])]
