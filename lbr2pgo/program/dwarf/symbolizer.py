"""Questions about addresses over all units of a file; units are decoded on demand.

Source: LLVM: DWARFContext.cpp getInliningInfoForAddress; ProfiledBinary.cpp for functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from threading import Lock

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.dwarf.code import ENDINGS, Code, read_code
from lbr2pgo.program.dwarf.container import Container, runs
from lbr2pgo.program.dwarf.cover import Claims, Cover, read_claims, resolve
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions, Frames, Lines
from lbr2pgo.program.dwarf.frames import Group, Interned, TableOf, assemble, name_files
from lbr2pgo.program.dwarf.functions import describe
from lbr2pgo.program.dwarf.lines import LineTable, read_line_table
from lbr2pgo.program.dwarf.split import SplitUnits
from lbr2pgo.support.arrays import I64, U32, U64
from lbr2pgo.support.threads import share, threads


class Symbolizer:
    """All that is known of one file; decodes a unit when an address in it is first asked for."""

    def __init__(self, container: Container, problems: Counter[str]) -> None:
        self.container = container
        self._problems = problems
        self._code: dict[int, Code] = {}
        self._places: dict[int, tuple[Container, int]] = {}
        """Where the DIEs of each unit are that was ever read."""
        self._lines: dict[int, LineTable | None] = {}
        self._lock = Lock()
        self._split = SplitUnits(container, problems)
        if container.unread:
            reason = "bytes of .debug_info behind a unit header that makes no sense"
            problems[reason] += container.unread

    @cached_property
    def claims(self) -> Claims:
        """The units that say an address is theirs."""
        return read_claims(self.container)

    @cached_property
    def _cover(self) -> Cover:
        """The unit of each address."""
        return resolve(self.claims)

    @property
    def units_decoded(self) -> int:
        """How many units' DIEs were read so far."""
        return len(self._places)

    def _decode(self, units: Sequence[int]) -> None:
        """Read the DIEs of units; those of a skeleton are in its split half, if it has one."""
        missing = [unit for unit in units if unit not in self._code]
        # A unit that was forgotten is read again; what is wrong with it was said the first time.
        new = {unit for unit in missing if unit not in self._places}
        for unit in sorted(new):
            self._places[unit] = self._split.find(unit) or (self.container, unit)
        for container, at in (self._places[unit] for unit in missing):
            container.declarations(at)  # made and kept here, so that threads only look

        def read(unit: int) -> None:
            self._code[unit] = code = read_code(*self._places[unit])
            if unit in new and code.ending in ENDINGS:
                self._note(ENDINGS[code.ending])

        share([(unit,) for unit in missing], [read] * threads())

    def _note(self, problem: str, count: int = 1) -> None:
        with self._lock:  # several threads read
            self._problems[problem] += count

    def line_table(self, unit: int) -> LineTable | None:
        """A unit's line table, None if it has none."""
        if unit not in self._lines:
            self._lines[unit] = self._read_line_table(unit)
        return self._lines[unit]

    def _read_line_table(self, unit: int) -> LineTable | None:
        table = read_line_table(self.container, unit)
        if table is not None and not table.is_complete:
            self._note("line tables cut off by damage")
        return table

    def frames(self, addresses: U64) -> Frames:
        """See `DebugInfo.frames`."""
        groups = self._groups(addresses, self.line_table, _each)
        return assemble(groups, len(addresses), self.line_table)

    def places(self, addresses: U64) -> tuple[Frames, I64]:
        """See `DebugInfo.places`.

        What was read of a large program would be most of the memory, so nothing is kept: this
        is asked once, of all that ran.
        """
        groups = self._groups(addresses, self._read_line_table, _first_at_place)
        self._code.clear()
        is_first = self._cover.unit_of(addresses) < 0
        for group in groups:
            is_first[group.rows] = True
        place = np.cumsum(is_first) - 1
        groups = [group._replace(rows=place[group.rows]) for group in groups]
        return assemble(groups, int(is_first.sum()), None), place

    def _groups(self, addresses: U64, table_of: TableOf, chosen: _Choice) -> list[Group]:
        """The frames of those addresses that `chosen` chooses, unit by unit."""
        by_unit = list(self._by_unit(addresses))
        self._decode([unit for unit, _ in by_unit])
        groups: dict[int, Group] = {}

        def look(unit: int, rows: I64) -> None:
            lines = _look_up(table_of(unit), addresses[rows])
            leaves = self._code[unit].leaves(addresses[rows])
            kept = chosen(rows, leaves, lines)
            groups[unit] = self._group(unit, rows[kept], leaves[kept], lines[:, kept])

        share(by_unit, [look] * threads())
        return [groups[unit] for unit, _ in by_unit]

    def lines(self, addresses: U64) -> Lines:
        """See `DebugInfo.lines`."""
        columns = np.zeros((4, len(addresses)), np.uint32)
        units = np.zeros(len(addresses), np.int32)
        for unit, rows in self._by_unit(addresses):
            units[rows] = unit
            columns[:, rows] = _look_up(self.line_table(unit), addresses[rows])
        found = columns[0] > 0
        file = np.full(len(addresses), -1, np.int32)
        file[found], files = name_files(units[found], columns[1, found], self.line_table)
        return Lines(file, columns[2], columns[3], files)

    def functions(self, units: I64, lowest: int) -> DwarfFunctions:
        """The functions of some units; ranges that start below `lowest` are left out."""
        self._decode(units.tolist())
        codes = [self._code[unit] for unit in units.tolist()]
        # LLVM takes all units of the file itself before those of split files.
        codes.sort(key=lambda code: code.container is not self.container)
        names = Interned()
        parts = [(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int32))]
        for container, same in groupby(codes, key=lambda code: code.container):
            ranges = zip(*(code.function_ranges for code in same), strict=True)
            starts, ends, dies = map(np.concatenate, ranges)
            known, back = np.unique(dies, return_inverse=True)
            parts.append((starts, ends, names.indices(describe(container, known).names)[back]))
        starts, ends, function = map(np.concatenate, zip(*parts, strict=True))
        texts = names.texts
        named = np.array([text != "" for text in texts], np.bool_)
        kept = (ends > starts) & (starts >= np.uint64(lowest)) & named[function]
        _, first = np.unique(starts[kept], return_index=True)
        starts, ends, function = (column[kept][first] for column in (starts, ends, function))
        used, function = np.unique(function, return_inverse=True)
        chosen = tuple(texts[i] for i in used.tolist())
        return DwarfFunctions(starts, ends, function.astype(np.int32), chosen)

    def _by_unit(self, addresses: U64) -> Iterator[tuple[int, I64]]:
        """Each unit that covers some of the addresses, and which ones."""
        unit_of = self._cover.unit_of(addresses)
        order = np.argsort(unit_of, kind="stable")
        for unit, start, end in runs(unit_of[order]):
            if unit >= 0:
                yield unit, order[start:end]

    def _group(self, unit: int, rows: I64, leaves: I64, lines: U32) -> Group:
        """The frames of the addresses at `rows`, which `unit` covers; `lines` as of `_look_up`."""
        code = self._code[unit]
        offsets, chain, cut = code.chains(leaves)
        if cut:
            self._note("addresses inlined deeper than can be kept", cut)
        # An address without a function, but with a line, has one frame without a name.
        lonely = (lines[0] > 0) & (np.diff(offsets) == 0)
        lengths = np.where(lonely, 1, np.diff(offsets))
        is_used = np.zeros(len(code.dies), np.bool_)
        is_used[chain] = True
        die = np.full(int(lengths.sum()), -1, np.int32)
        die[np.repeat(~lonely, lengths)] = (np.cumsum(is_used, dtype=np.int32) - 1)[chain]
        used = code.dies["offset"][is_used]
        return Group(rows, unit, code.container, lengths, used, die, lines[1:])


def _look_up(table: LineTable | None, addresses: U64) -> U32:
    """(4, k): whether a line was found, file number, line, discriminator."""
    if table is None:
        return np.zeros((4, len(addresses)), np.uint32)
    return np.array(table.look_up(addresses), np.uint32)


_Choice = Callable[[I64, I64, U32], npt.NDArray[np.bool_]]
"""Which addresses to keep, by their rows, leaves and lines."""


def _each(rows: I64, _leaves: I64, _lines: U32) -> npt.NDArray[np.bool_]:
    return np.ones(len(rows), np.bool_)


def _first_at_place(rows: I64, leaves: I64, lines: U32) -> npt.NDArray[np.bool_]:
    """Those that differ from the address before them, or don't stand right behind it."""
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (np.diff(rows) != 1) | (np.diff(leaves) != 0)
    is_first[1:] |= (lines[:, 1:] != lines[:, :-1]).any(axis=0)
    return is_first
