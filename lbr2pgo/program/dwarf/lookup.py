"""Questions about addresses over all units of a file; units are decoded on demand.

Source: LLVM: DWARFContext.cpp getInliningInfoForAddress; DWARFDebugAranges.cpp for which unit an
address belongs to where several claim it; ProfiledBinary.cpp for functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np

from lbr2pgo.program.dwarf import _units as native
from lbr2pgo.program.dwarf._lines import FOUND
from lbr2pgo.program.dwarf._units import RANGE
from lbr2pgo.program.dwarf.frame import Group, InlineFrames, assemble, name_files
from lbr2pgo.program.dwarf.function import (
    ENDINGS,
    Around,
    DwarfFunctions,
    NumberedTexts,
    describe,
    functions_around,
    name_all,
    subprogram_ranges,
)
from lbr2pgo.program.dwarf.line import Lines, LineTable, Origin, read_line_table
from lbr2pgo.program.dwarf.loader import SplitUnits
from lbr2pgo.program.dwarf.scope import ScopedPlaces, ScopeGroup, assemble_places
from lbr2pgo.program.dwarf.unit import Claims, Dwarf
from lbr2pgo.program.dwarf.variables import StaticVariables, static_variables
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U64, Bools, Records
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct, inverse
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import is_ascending
from lbr2pgo.support.threads import MANY, distribute, threads

GroupT = TypeVar("GroupT")


@dataclass(frozen=True)
class Cover:
    """Intervals of addresses, sorted, free of overlaps, each with its unit."""

    starts: U64
    ends: U64
    units: I64

    def by_unit(self, addresses: U64) -> Iterator[tuple[int, I64]]:
        """Each unit that covers some of (n,) ascending addresses, in order, and which ones."""
        if not len(addresses):
            return
        near = slice(  # most questions are about one function
            self.ends.searchsorted(addresses[0], "right"),
            self.starts.searchsorted(addresses[-1], "right"),
        )
        starts, ends, units = self.starts[near], self.ends[near], self.units[near]
        first, past = (addresses.searchsorted(bounds) for bounds in (starts, ends))
        used = np.flatnonzero(first < past)
        used = used[np.argsort(units[used], kind="stable")]
        for part in np.split(used, np.flatnonzero(np.diff(units[used])) + 1) if len(used) else ():
            yield int(units[part[0]]), numbers_in(first[part], past[part])


def resolve(claims: Claims) -> Cover:
    """A cover of claims that may overlap.

    A claim that no other touches stands as it is. Where claims overlap, each stretch goes on
    belonging to the unit before it if that one claims it too, and to the first unit otherwise.

    >>> u64 = lambda *numbers: np.array(numbers, np.uint64)
    >>> cover = resolve(Claims(u64(0, 4, 20), u64(10, 12, 30), np.array([1, 0, 2])))
    >>> [*zip(cover.starts.tolist(), cover.ends.tolist(), cover.units.tolist())]
    [(0, 10, 1), (10, 12, 0), (20, 30, 2)]
    """
    reach = np.maximum.accumulate(claims.ends)
    if np.all(reach[:-1] <= claims.starts[1:]):
        return Cover(claims.starts, claims.ends, claims.units)
    order = np.argsort(np.concatenate([claims.starts, claims.ends]), kind="stable")
    found = native.resolve(claims.starts, claims.ends, claims.units, order)
    return Cover(*(np.ascontiguousarray(found[name]) for name in ("low", "high", "owner")))


class Symbolizer:
    """Answers for one file; reads a unit when an address in it is asked for."""

    def __init__(
        self, dwarf: Dwarf, problems: Counter[str], expected: ImageAddresses | None = None
    ) -> None:
        """Take the addresses around which alone lines are kept until others are asked for."""
        self.dwarf = dwarf
        self._problems = problems
        self._homes: dict[int, tuple[Dwarf, int]] = {}
        """Where the DIEs of each unit are that was ever read: a skeleton's in its split half."""
        self._noted: set[int] = set()
        """Units of which it was said how reading them ended."""
        self._lines: dict[int, LineTable | None] = {}
        self._expected = expected
        self._lock = Lock()
        self._split = SplitUnits(dwarf, problems)
        if dwarf.unread:
            reason = "bytes of .debug_info behind a unit header that makes no sense"
            problems[reason] += dwarf.unread

    @cached_property
    def claims(self) -> Claims:
        """The units that say an address is theirs."""
        return self.dwarf.claims()

    @cached_property
    def _cover(self) -> Cover:
        """The unit of each address."""
        return resolve(self.claims)

    @property
    def units_decoded(self) -> int:
        """How many units' DIEs were read so far."""
        return len(self._homes)

    def _prepare(self, units: Sequence[int]) -> None:
        """Find where units' DIEs are, and read how they are declared, before threads do."""
        for unit in units:
            if unit not in self._homes:
                self._homes[unit] = self._split.find(unit) or (self.dwarf, unit)
        homes = sorted((self._homes[unit] for unit in units), key=lambda home: id(home[0]))
        for _, same in groupby(homes, key=lambda home: id(home[0])):
            (dwarf, first), *others = same
            dwarf.load([first, *(at for _, at in others)])

    def _note_ending(self, unit: int, ending: int) -> None:
        """Say what is wrong with a unit, the first time it is read."""
        with self._lock:  # several threads read
            if unit not in self._noted and ending in ENDINGS:
                self._problems[ENDINGS[ending]] += 1
            self._noted.add(unit)

    def _note(self, problem: str, count: int = 1) -> None:
        with self._lock:
            self._problems[problem] += count

    def line_table(self, unit: int) -> LineTable | None:
        """A unit's line table, None if it has none; with rows for expected addresses at least."""
        if unit not in self._lines:
            self._lines[unit] = self._read_line_table(unit, self._expected)
        return self._lines[unit]

    def _table_with(self, unit: int, addresses: U64) -> LineTable | None:
        """The same, with rows for these addresses, too."""
        table = self.line_table(unit)
        if table is not None and not table.holds(addresses):
            table = self._lines[unit] = self._read_line_table(unit, None)
        return table

    def _read_line_table(self, unit: int, wanted: U64 | None) -> LineTable | None:
        table = read_line_table(self.dwarf, unit, wanted)
        if table is not None and not table.is_complete:
            self._note("line tables cut off by damage")
        return table

    def frames(self, addresses: ImageAddresses) -> InlineFrames:
        """See `DebugInfo.frames`."""
        ascending, rows = _in_order(addresses)
        groups = self._groups(ascending, self._table_with, self._framed)
        groups = [group._replace(rows=rows[group.rows]) for group in groups]
        return assemble(groups, len(addresses), self.line_table)

    def places(self, addresses: ImageAddresses) -> tuple[ScopedPlaces, I64]:
        """See `DebugInfo.places`.

        What was read of a large program would be most of the memory, so nothing is kept: this
        is asked once, of all that ran.
        """
        if not is_ascending(addresses, repeats=True):
            order = np.argsort(addresses, kind="stable")
            found, place = self.places(addresses[order])
            return found, place[inverse(order)]
        is_first = np.ones(len(addresses), np.bool_)

        def scoped(read: _Read) -> ScopeGroup:
            is_first[read.rows] = kept = _are_first_at_place(read)
            return self._scoped(read, kept)

        groups = self._groups(addresses, self._read_line_table, scoped)
        place = np.cumsum(is_first) - 1
        groups = [group._replace(rows=place[group.rows]) for group in groups]
        return assemble_places(groups, int(is_first.sum())), place

    def _groups(
        self,
        addresses: U64,
        table_of: Callable[[int, U64], LineTable | None],
        group_of: Callable[[_Read], GroupT],
    ) -> list[GroupT]:
        """What is made of ascending addresses, unit by unit."""
        by_unit = list(self._cover.by_unit(addresses))
        self._prepare([unit for unit, _ in by_unit])
        groups: dict[int, GroupT] = {}

        def read(unit: int, rows: I64) -> None:
            there = addresses[rows]
            found = _look_up(table_of(unit, there), there)
            groups[unit] = group_of(self._read(unit, rows, there, found))

        distribute(by_unit, [read] * threads(MANY))
        return [groups[unit] for unit, _ in by_unit]

    def _read(self, unit: int, rows: I64, addresses: U64, found: Records) -> _Read:
        dwarf, at = self._homes[unit]
        sections = dwarf.with_dies(at)
        around = functions_around(dwarf, at, sections, addresses)
        self._note_ending(unit, around.ending)
        return _Read(unit, rows, found, dwarf, around, partial(describe, dwarf, at, sections))

    def _framed(self, read: _Read) -> Group:
        """The frames of addresses."""
        around = read.around
        offsets, chain, cut = around.chains(around.leaves)
        self._note_cut(cut)
        # An address without a function, but with a line, has one frame without a name.
        lonely = (read.found["is_there"] != 0) & (np.diff(offsets) == 0)
        lengths = np.where(lonely, 1, np.diff(offsets))
        is_used = np.zeros(len(around.dies), np.bool_)
        is_used[chain] = True
        die = np.full(int(lengths.sum()), -1, np.int32)
        die[np.repeat(~lonely, lengths)] = (np.cumsum(is_used, dtype=np.int32) - 1)[chain]
        described = read.describe(around.dies["offset"][is_used])
        return Group(read.rows, read.unit, read.dwarf, lengths, described, die, read.found)

    def _scoped(self, read: _Read, kept: Bools) -> ScopeGroup:
        """Some of the addresses, and the functions around them."""
        around = read.around
        is_around, parent, scope, cut = around.scopes(around.leaves[kept])
        self._note_cut(cut)
        described = read.describe(around.dies["offset"][is_around])
        return ScopeGroup(read.rows[kept], scope, read.found[kept], read.dwarf, parent, described)

    def _note_cut(self, cut: int) -> None:
        if cut:
            self._note("addresses inlined deeper than can be kept", cut)

    def lines(self, addresses: ImageAddresses) -> Lines:
        """See `DebugInfo.lines`."""
        ascending, order = _in_order(addresses)
        found = np.zeros(len(addresses), FOUND)
        units = np.zeros(len(addresses), np.int32)
        for unit, rows in self._cover.by_unit(ascending):
            units[order[rows]] = unit
            there = ascending[rows]
            found[order[rows]] = _look_up(self._table_with(unit, there), there)
        known = np.flatnonzero(found["is_there"])
        file = np.full(len(addresses), -1, np.int32)
        file[known], files = name_files(units[known], found["file"][known], self.line_table)
        return Lines(file, found["line"], found["discriminator"], found["column"], files)

    def unit_names(self, addresses: ImageAddresses) -> list[str | None]:
        """See `DebugInfo.unit_names`."""
        units: list[int] = self.units(addresses).tolist()
        names = {u: self.dwarf.text(self.dwarf.units["name"][u]) for u in {*units} - {-1}}
        return [names.get(unit) for unit in units]

    def units(self, addresses: ImageAddresses) -> I64:
        """See `DebugInfo.units`."""
        ascending, order = _in_order(addresses)
        found = np.full(len(addresses), -1)
        for unit, rows in self._cover.by_unit(ascending):
            found[order[rows]] = unit
        return found

    def origins(self, addresses: ImageAddresses) -> dict[str, Origin]:
        """See `DebugInfo.origins`."""
        ascending, _ = _in_order(addresses)
        origins: dict[str, Origin] = {}
        for unit, rows in self._cover.by_unit(ascending):
            table = self._table_with(unit, ascending[rows])
            if table is not None:
                found = _look_up(table, ascending[rows])
                numbers = distinct(found["file"][found["is_there"] != 0]).tolist()
                origins |= {table.file_name(number): table.origin(number) for number in numbers}
        return origins

    def functions(self, units: I64, lowest: int) -> DwarfFunctions:
        """The functions of some units; ranges that start below `lowest` are left out."""
        names = NumberedTexts()
        parts = [(np.zeros(0, RANGE), np.zeros(0, np.int32))]
        for dwarf, found in self._subprograms(units.tolist(), np.uint64(lowest)):
            ranges, described = map(np.concatenate, zip(*found, strict=True))
            parts.append((ranges, name_all(dwarf, described, names)))
        ranges, function = map(np.concatenate, zip(*parts, strict=True))
        ranges, function = ranges[function >= 0], function[function >= 0]
        starts, first = np.unique(ranges["low"], return_index=True)
        used, function = np.unique(function[first], return_inverse=True)
        chosen = names.texts.take(used)
        return DwarfFunctions(starts, ranges["high"][first], function.astype(np.int32), chosen)

    def static_variables(self) -> StaticVariables:
        """See `DebugInfo.static_variables`."""
        units: list[int] = np.flatnonzero(self.dwarf.is_compile_unit).tolist()
        self._prepare(units)
        found: dict[int, Records] = {}

        def read(unit: int) -> None:
            dwarf, at = self._homes[unit]
            found[unit], ending = static_variables(dwarf, at, dwarf.with_dies(at))
            self._note_ending(unit, ending)

        distribute([(unit,) for unit in units], [read] * threads(MANY))
        return StaticVariables.of_units([(self._homes[unit][0], found[unit]) for unit in units])

    def _subprograms(
        self, units: Sequence[int], lowest: np.uint64
    ) -> Iterator[tuple[Dwarf, list[tuple[Records, Records]]]]:
        """Functions of each file, unit by unit: as in LLVM, of the file itself before others.

        Ranges that hold something, and the descriptions of their functions.
        """
        self._prepare(units)
        found: dict[int, tuple[Records, Records]] = {}

        def read(unit: int) -> None:
            dwarf, at = self._homes[unit]
            sections = dwarf.with_dies(at)
            ranges, ending = subprogram_ranges(dwarf, at, sections)
            self._note_ending(unit, ending)
            ranges = ranges[(ranges["high"] > ranges["low"]) & (ranges["low"] >= lowest)]
            dies, back = np.unique(ranges["owner"], return_inverse=True)
            found[unit] = ranges, describe(dwarf, at, sections, dies)[back]

        distribute([(unit,) for unit in units], [read] * threads(MANY))
        ordered = sorted(units, key=lambda unit: self._homes[unit][0] is not self.dwarf)
        for dwarf, same in groupby(ordered, key=lambda unit: self._homes[unit][0]):
            yield dwarf, [found[unit] for unit in same]


def _in_order(addresses: U64) -> tuple[U64, I64]:
    """Addresses ascending, and where each of them stood."""
    order = np.argsort(addresses, kind="stable")
    return addresses[order], order


def _look_up(table: LineTable | None, addresses: U64) -> Records:
    """(k,) rows of `FOUND`."""
    return np.zeros(len(addresses), FOUND) if table is None else table.look_up(addresses)


class _Read(NamedTuple):
    """What was read of a unit for the addresses that it covers."""

    unit: int
    rows: I64
    """(k,): which of the addresses."""
    found: Records
    """(k,) rows of `FOUND`."""
    dwarf: Dwarf
    """Where the DIEs are."""
    around: Around
    describe: Callable[[I64], Records]
    """What DIEs say, by their offsets."""


def _are_first_at_place(read: _Read) -> Bools:
    """(k,): those that differ from the address before them, or don't stand right behind it."""
    is_first = np.ones(len(read.rows), np.bool_)
    is_first[1:] = (np.diff(read.rows) != 1) | (np.diff(read.around.leaves) != 0)
    is_first[1:] |= read.found[1:] != read.found[:-1]
    return is_first
