"""Tables of abbreviations, each parsed once and shared by the units that refer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.native.dwarf_units import DECLARATION, parse_abbreviations
from lbr2pgo.support.arrays import Records

_KEY = ("abbrev", "version", "address_size", "offset_size")
"""What of a unit a table depends on; the sizes, because it holds those of DIEs."""


@dataclass
class Abbreviations:
    """The tables of one .debug_abbrev section.

    Tables don't overlap, unless they are made to be read over and over: when there are more rows
    than the section has bytes, further tables are empty.
    """

    section: npt.NDArray[np.uint8]
    _tables: dict[tuple[int, ...], Records] = field(default_factory=dict)
    _rows: int = 0

    def table(self, unit: Any) -> Records:
        """Rows of `DECLARATION` of a unit (a row of `UNIT`), sorted by code."""
        key = tuple(int(unit[name]) for name in _KEY)
        if key not in self._tables:
            self._tables[key] = self._parse(unit)
            self._rows += len(self._tables[key])
        return self._tables[key]

    def _parse(self, unit: Any) -> Records:
        size = 64
        while self._rows <= len(self.section):
            table = np.zeros(size, DECLARATION)
            count = parse_abbreviations(self.section, unit, table)
            if count < size:
                return table[:count][np.argsort(table["code"][:count], kind="stable")]
            size *= 4
        return np.zeros(0, DECLARATION)
