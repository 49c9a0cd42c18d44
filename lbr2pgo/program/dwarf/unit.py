"""One file's DWARF: its sections, its units, and which addresses they claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lbr2pgo.native.dwarf_texts import Texts
from lbr2pgo.native.dwarf_units import (
    Abbreviations,
    Sections,
    read_aranges,
    read_units,
    unit_ranges,
)
from lbr2pgo.support.arrays import I64, U64, Bools, Bytes, Records
from lbr2pgo.support.intervals import interval_of

GetSection = Callable[[str], Bytes]
"""The content of `.debug_<name>`, unpacked; empty where it is absent or damaged."""

NO_PACKAGE = np.zeros((0, 4), np.int64)
_NUMBERS = ("info", "abbrev", "addr", "ranges", "rnglists", "str_offsets", "line")
_STRINGS = ("str", "line_str", "info", "line")
_SHARED = {"addr", "ranges"}
"""Sections that a split file has in common with its skeleton."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Ranges that units say are theirs, sorted by their starts; they may overlap."""

    starts: U64
    ends: U64
    units: I64

    def units_with(self, addresses: U64) -> I64:
        """Units that claim at least one of the addresses, in order."""
        addresses = np.sort(addresses)
        before, behind = (np.searchsorted(addresses, b) for b in (self.starts, self.ends))
        return np.unique(self.units[before < behind])


class Dwarf:
    """The DWARF of one file, or of the split half of one (its `.dwo` sections)."""

    def __init__(
        self,
        path: str,
        get: GetSection,
        *,
        skeleton: Dwarf | None = None,
        supplement: Dwarf | None = None,
        package: I64 = NO_PACKAGE,
    ) -> None:
        """Of a split half, `skeleton` is the other one.

        `supplement` is the file to which dwz moved what several programs share, `package` the
        index of a `.dwp` file (see `read_units`).
        """
        self.path, self.supplement, self._package = path, supplement, package
        self._data: dict[str, Bytes] = {
            name: skeleton._data[name] if skeleton and name in _SHARED else get(name)
            for name in {*_NUMBERS, *_STRINGS}
        }
        self._aranges = np.zeros(0, np.uint8) if skeleton else get("aranges")
        self.sections = Sections(*(self._data[name] for name in _NUMBERS))
        moved = supplement._data["str"] if supplement else np.zeros(0, np.uint8)
        self.texts = Texts(*[*(self._data[name] for name in _STRINGS), moved])
        self.abbreviations = Abbreviations()

    @cached_property
    def _read(self) -> tuple[Records, int]:
        return read_units(self.sections, self._package)

    @property
    def units(self) -> Records:
        """(n,) rows of `UNIT`, in the order of the file."""
        return self._read[0]

    @property
    def unread(self) -> int:
        """Bytes of .debug_info behind the last header that makes sense."""
        return self._read[1]

    @property
    def is_compile_unit(self) -> Bools:
        """(n,): not a type unit."""
        is_compile_unit: Bools = self.units["is_type"] == 0
        return is_compile_unit

    @property
    def range_limit(self) -> int:
        """More ranges than a unit can have: lists are not shared, but in a hostile file."""
        return 4096 + sum(len(self._data[name]) for name in ("info", "ranges", "rnglists"))

    def load(self, units: Iterable[int]) -> None:
        """Read the abbreviations of units, which reading their DIEs needs."""
        self.abbreviations.load(self.sections, self.units, units)

    def text(self, place: int) -> str | None:
        """The string at a place, None if there is none."""
        return self.texts.decode(np.array([place]))[0]

    def claims(self) -> Claims:
        """What the units claim: in `.debug_aranges` if they are there, else in their root DIEs."""
        listed, claims = read_aranges(self._aranges)
        offsets = self.units["offset"]
        wanted = self.is_compile_unit & ~np.isin(offsets, listed)
        own = unit_ranges(self.sections, self.units, wanted.view(np.uint8), self.range_limit)
        # LLVM compares units by their offset; by index is the same order.
        at = interval_of(offsets, self.units["end"], claims["owner"])
        claims, at = claims[at >= 0], at[at >= 0]
        starts, ends = (np.concatenate([claims[name], own[name]]) for name in ("low", "high"))
        owners = np.concatenate([at, own["owner"]])
        order = np.argsort(starts, kind="stable")
        order = order[starts[order] < ends[order]]
        return Claims(starts[order], ends[order], owners[order])
