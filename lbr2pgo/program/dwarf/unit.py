"""One file's DWARF: its sections, its units, and which addresses they claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from lbr2pgo.program.dwarf._lines import table_length
from lbr2pgo.program.dwarf._units import (
    RANGE,
    UNIT,
    Abbreviations,
    Sections,
    read_aranges,
    read_units,
)
from lbr2pgo.program.dwarf.section import ABSENT, DebugSection, DebugTexts
from lbr2pgo.support.arrays import I64, U64, Bools, Bytes, Records
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import joined

GetSection = Callable[[str], DebugSection]
"""What `.debug_<name>` holds: nothing where it is absent or damaged."""

NO_PACKAGE = np.zeros((0, 4), np.int64)
_WHOLE = ("abbrev", "addr", "ranges", "rnglists", "str_offsets")
"""Sections that are read as a whole: they are small, and looked at everywhere."""
_SHARED = {"addr", "ranges"}
"""Sections that a split file has in common with its skeleton."""
_HEADERS = 1 << 12
"""Bytes of .debug_info that are read for headers of units and their root DIEs."""
_LONGEST_LENGTH = 12
"""Bytes of an initial length."""


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
        return distinct(self.units[before < behind])


class Dwarf:
    """The DWARF of one file, or of the split half of one (its `.dwo` sections).

    Of large sections only what is looked at is in memory: a unit at a time.
    """

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
        self._info, self._line, self._str = map(get, ("info", "line", "str"))
        self._aranges = ABSENT if skeleton else get("aranges")
        self._whole: dict[str, Bytes] = {
            name: skeleton._whole[name] if skeleton and name in _SHARED else _whole(get(name))
            for name in _WHOLE
        }
        self._sections = Sections(*self._whole.values())
        moved = supplement._str if supplement else ABSENT
        self.texts = DebugTexts((self._str, get("line_str"), self._info, self._line, moved))
        self.abbreviations = Abbreviations()

    @cached_property
    def _read(self) -> tuple[Records, Records, int]:
        """Units, ranges that their root DIEs claim, and where reading them ended."""
        parts = [(np.zeros(0, UNIT), np.zeros(0, RANGE))]
        position = count = 0
        end, limit = _HEADERS, self.range_limit
        budget = 64 * len(self._whole["abbrev"]) + (1 << 20)
        while end > 0:
            part = self._info.read(position, max(end, position + _HEADERS))
            units, ranges, position, end, budget = read_units(
                self._sections.with_info(part, position, self._info.size),
                self._package, position, count, budget, limit,
            )  # fmt: skip
            count += len(units)
            limit -= len(ranges)
            parts.append((units, ranges))
        units, ranges = map(joined, zip(*parts, strict=True))
        return units, ranges, position

    @property
    def units(self) -> Records:
        """(n,) rows of `UNIT`, in the order of the file."""
        return self._read[0]

    @property
    def unread(self) -> int:
        """Bytes of .debug_info behind the last header that makes sense."""
        return self._info.size - self._read[2]

    @property
    def is_package(self) -> bool:
        """Whether it is of a `.dwp` file."""
        return len(self._package) > 0

    @property
    def is_compile_unit(self) -> Bools:
        """(n,): not a type unit."""
        is_compile_unit: Bools = self.units["is_type"] == 0
        return is_compile_unit

    @property
    def range_limit(self) -> int:
        """More ranges than a unit can have: lists are not shared, but in a hostile file."""
        return 4096 + self._info.size + len(self._whole["ranges"]) + len(self._whole["rnglists"])

    def load(self, units: Iterable[int]) -> None:
        """Read the abbreviations of units, which reading their DIEs needs."""
        self.abbreviations.load(self._sections, self.units, units)

    def with_dies(self, unit: int) -> Sections:
        """What the DIEs of a unit need."""
        row = self.units[unit]
        start, end = int(row["offset"]), int(row["end"])
        return self._sections.with_info(self._info.read(start, end), start, self._info.size)

    def with_lines(self, unit: int) -> Sections:
        """What the line table of a unit needs."""
        start, size = int(self.units["lines"][unit]), self._line.size
        if not 0 <= start < size:
            return self._sections
        length = table_length(self._line.read(start, start + _LONGEST_LENGTH), size - start)
        return self._sections.with_line(self._line.read(start, start + length), start, size)

    def text(self, place: int) -> str | None:
        """The string at a place, None if there is none."""
        return self.texts.decode(np.array([place]))[0]

    def claims(self) -> Claims:
        """What the units claim: in `.debug_aranges` if they are there, else in their root DIEs."""
        listed, claims = read_aranges(_whole(self._aranges))
        units, own, _ = self._read
        own = own[~among(units["offset"], np.sort(listed))[own["owner"]]]
        # LLVM compares units by their offset; by index is the same order.
        at = interval_of(units["offset"], units["end"], claims["owner"])
        claims, at = claims[at >= 0], at[at >= 0]
        starts, ends = (np.concatenate([claims[name], own[name]]) for name in ("low", "high"))
        owners = np.concatenate([at, own["owner"]])
        order = np.argsort(starts, kind="stable")
        order = order[starts[order] < ends[order]]
        return Claims(starts[order], ends[order], owners[order])


def _whole(section: DebugSection) -> Bytes:
    return section.read(0, section.size)
