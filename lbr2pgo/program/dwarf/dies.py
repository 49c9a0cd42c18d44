"""Debugging information entries (DIEs), with their children and what they refer to."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.dwarf._units import Sections
from lbr2pgo.program.dwarf._variables import HERE, MOVED, SIGNED, entry_with_children
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.intervals import interval_of

_DECLARED = {0x02, 0x04, 0x13, 0x17}
"""Classes, enumerations, structs and unions, which may be whole in a unit of their own only."""
_KEPT = 4
"""Units of which the entries stay in memory: those of types are mostly in one with the variable."""


class Die(NamedTuple):
    """What an entry says of itself."""

    dwarf: Dwarf
    offset: int
    """In its `.debug_info`."""
    tag: int
    name: str
    """Empty where it has none."""
    size: int
    """In bytes; -1 where it is not known, as with the next two."""
    place: int
    """Where a member starts in what it is in, in bytes."""
    elements: int
    """Of a dimension."""
    where: int
    """Of the entry of its type, as in `_variables`."""
    type: int
    origin: int
    """Offset of the entry that it completes; -1 where there is none."""


class Dies:
    """Those of a program; each is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], tuple[Die, ...]] = {}
        self._sections = lru_cache(_KEPT)(_sections)

    def at(self, dwarf: Dwarf, offset: int) -> tuple[Die, ...]:
        """The entry at an offset and, behind it, its children; empty if there is none."""
        key = id(dwarf), offset
        if key not in self._read:
            self._read[key] = tuple(self._with_children(dwarf, offset))
        return self._read[key]

    def _with_children(self, dwarf: Dwarf, offset: int) -> list[Die]:
        units = dwarf.units
        (unit,) = interval_of(units["offset"], units["end"], np.array([offset])).tolist()
        if unit < 0 or (units["is_type"][unit] and dwarf.is_package):
            return []  # of a package's units of types we don't know where their names are
        rows = entry_with_children(
            self._sections(dwarf, unit), units, unit, dwarf.abbreviations, offset
        )
        names = (name or "" for name in dwarf.texts.decode(rows["name"]))
        columns = (rows[name].tolist() for name in ("size", "place", "count", "where", "type"))
        found = zip(
            rows["offset"].tolist(), rows["tag"].tolist(), names, *columns,
            rows["origin"].tolist(), strict=True,
        )  # fmt: skip
        return [Die(dwarf, *row) for row in found]

    def type_of(self, entry: Die) -> tuple[Die, ...]:
        """As `at`, of the type that an entry, or the one that it completes, has."""
        found = self._referred(entry)
        is_declared = bool(found) and found[0].where == SIGNED and found[0].tag in _DECLARED
        return self._referred(found[0]) if is_declared else found

    def _referred(self, entry: Die) -> tuple[Die, ...]:
        if entry.where == HERE:
            return self.at(entry.dwarf, entry.type)
        if entry.where == MOVED and entry.dwarf.supplement is not None:
            return self.at(entry.dwarf.supplement, entry.type)
        if entry.where == SIGNED:
            return self._signed(entry.dwarf, entry.type)
        completed = self.at(entry.dwarf, entry.origin) if entry.origin >= 0 else ()
        return self._referred(completed[0]) if completed and completed[0].origin < 0 else ()

    def _signed(self, dwarf: Dwarf, signature: int) -> tuple[Die, ...]:
        units = dwarf.units
        rows = np.flatnonzero((units["is_type"] != 0) & (units["dwo_id"] == np.uint64(signature)))
        return self.at(dwarf, int(units["type"][rows[0]])) if len(rows) else ()


def _sections(dwarf: Dwarf, unit: int) -> Sections:
    dwarf.load([unit])
    return dwarf.with_dies(unit)
