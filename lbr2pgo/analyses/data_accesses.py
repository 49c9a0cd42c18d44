"""Which data was loaded and stored, by symbol and field, and cache lines shared for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.evidence.data_accesses import DATA_ACCESSES, NO_ACCESSES, DataAccesses
from lbr2pgo.program.dwarf.data_types import DataField
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.data_symbols import data_sections, data_symbols
from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, distinct, distinct_rows, order_of, rows_by
from lbr2pgo.support.sums import sums_at
from lbr2pgo.support.tables import taken

NAME = "data"
PARTS = ("types", "false-sharing")
TITLE = "Data that was loaded and stored"
_TYPES = "Types and fields of that data"
_SHARED = "Cache lines of which threads use different words"
_LINE_BITS, _WORD_BITS, _PAGE_BITS = 6, 3, 12

_SHARE = Column("share", "share", Unit.SHARE, FIGURE)
_SYMBOL = Column("symbol", "symbol", Unit.TEXT, FIGURE)
_LOADS, _STORES = (
    Column("loads", "loads", Unit.COUNT, FIGURE),
    Column("stores", "stores", Unit.COUNT, FIGURE),
)
_ADDRESS = Column("address", "address", Unit.ADDRESS)

_NONE = (
    "The recording has no accesses: lbr2pgo record --data samples some under emulation, and perf "
    "mem record -b on hardware."
)
_HOW = (
    "Lines are of 64 bytes and pages of 4 KiB. `apart` is how many samples of its thread lie "
    "between two of a line, on average: how many accesses, if these were sampled evenly."
)
_NO_TYPES = "Nothing tells their types: build with -g, which does not change the code."
_WHY_SHARED = (
    "What a thread stores there makes the others' processors fetch the line anew, though they use "
    "other words of it: align such data, or pad it."
)


@dataclass(frozen=True, slots=True)
class _Objects:
    """The symbols and, behind them, the sections that hold data."""

    names: Names
    """Of the symbols."""
    start: U64
    end: U64
    section_names: tuple[str, ...]
    of: I64
    """(n,): which one each access is in."""
    fields: tuple[DataField, ...]
    field: I64
    """(n,): which field each access is to, -1 where that is not known."""

    def name(self, number: int) -> str:
        """A section stands in brackets, for data in it that has no symbol."""
        behind = number - len(self.names)
        return self.names[number] if behind < 0 else f"[{self.section_names[behind]}]"

    def used_fields(self, accesses: I64) -> str | None:
        """Names of the fields of some accesses; None where nothing is known."""
        fields = [self.fields[i] for i in distinct(self.field[accesses]).tolist() if i >= 0]
        return ", ".join(field.field or field.type for field in fields) or None


def _objects(evidence: Evidence, found: DataAccesses) -> _Objects:
    symbols = evidence.program.symbols
    objects, sections = data_symbols(symbols), data_sections(evidence.program.image)
    symbol, section = objects.containing(found.address), sections.containing(found.address)
    field, fields = _fields(evidence.program, found)
    return _Objects(
        symbols.names.take(objects.row),
        np.concatenate([objects.start, sections.start]),
        np.concatenate([objects.end, sections.end]),
        sections.names,
        np.where(symbol >= 0, symbol, len(objects) + section),
        fields,
        field,
    )


def _fields(program: Program, found: DataAccesses) -> tuple[I64, tuple[DataField, ...]]:
    """The field that each access (n,) is to, see `StaticVariables.fields`."""
    if not len(found):
        return np.zeros(0, np.int64), ()
    address = distinct(found.address)
    field, fields = DebugInfo(program.debug_files).static_variables().fields(address)
    return field[address.searchsorted(found.address)], fields


def data_accesses(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """A row for each symbol, and each field, most accessed first; lines that are shared falsely."""
    told = evidence.found(DATA_ACCESSES)
    found = NO_ACCESSES if told is None else told
    objects = _objects(evidence, found)
    return (
        _by_symbol(found, objects, top),
        _by_field(found, objects, top),
        _falsely_shared(found, objects, top),
    )


def _by_symbol(found: DataAccesses, objects: _Objects, top: int | None) -> Table:
    order, figures = _figures(found, objects.of, len(objects.start), _total(found))
    rows = order[:top]
    columns: list[tuple[Column, list[Value]]] = [
        *_of_rows(figures, rows),
        (_SYMBOL, [objects.name(row) for row in rows.tolist()]),
        (Column("bytes", "bytes", Unit.COUNT), (objects.end - objects.start)[rows].tolist()),
        (_ADDRESS, objects.start[rows].tolist()),
    ]
    return build(NAME, TITLE, columns, notes=_notes(found), found=len(order))


def _by_field(found: DataAccesses, objects: _Objects, top: int | None) -> Table:
    """All variables of a type together."""
    known = objects.field >= 0
    order, figures = _figures(
        taken(found, known), objects.field[known], len(objects.fields), _total(found)
    )
    rows = order[:top]
    fields = [objects.fields[row] for row in rows.tolist()]
    columns: list[tuple[Column, list[Value]]] = [
        *_of_rows(figures, rows),
        (Column("type", "type", Unit.TEXT, FIGURE), [each.type for each in fields]),
        (Column("field", "field", Unit.TEXT, FIGURE), [each.field or None for each in fields]),
    ]
    notes = (_NO_TYPES,) if len(found) and not known.any() else ()
    return build(f"{NAME}-types", _TYPES, columns, notes=notes, found=len(order))


_Figures = dict[Column, npt.NDArray[Any]]


def _figures(found: DataAccesses, of: I64, size: int, total: int) -> tuple[I64, _Figures]:
    """How each of so many things (size,) was used, and those that were, most used first."""
    loads, stores = (
        sums_at(of[rows], found.count[rows], size)
        for rows in (np.flatnonzero(~found.is_store), np.flatnonzero(found.is_store))
    )
    lines, pages = (
        _different(of, found.address >> np.uint64(bits), size) for bits in (_LINE_BITS, _PAGE_BITS)
    )
    order = np.flatnonzero(lines)
    order = order[np.argsort(-(loads + stores)[order].astype(np.int64), kind="stable")]
    return order, {
        _SHARE: (loads + stores) / max(total, 1),
        _LOADS: loads,
        _STORES: stores,
        Column("lines", "lines touched", Unit.COUNT): lines,
        Column("pages", "pages touched", Unit.COUNT): pages,
        Column("apart", "apart", Unit.RATE): _apart(found, of, size),
    }


def _of_rows(figures: _Figures, rows: I64) -> Iterator[tuple[Column, list[Value]]]:
    for column, values in figures.items():
        yield column, [_known(value) for value in values[rows].tolist()]


def _total(found: DataAccesses) -> int:
    return int(found.count.sum()) + found.elsewhere


def _notes(found: DataAccesses) -> tuple[str, ...]:
    total = _total(found)
    if not total:
        return (_NONE,)
    outside = found.elsewhere / total
    return (f"{outside:.1%} were of stacks, heaps and other files, which no row is of.", _HOW)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _different(of: I64, thing: I64 | U64, size: int) -> I64:
    """How many different things (n,) are with each of so many numbers."""
    return np.bincount(of[distinct_rows(of, thing)[0]], minlength=size)


def _apart(found: DataAccesses, of: I64, size: int) -> F64:
    """Of each thing (size,) the mean distance of uses of a line by a thread; NaN without any."""
    line = found.address >> np.uint64(_LINE_BITS)
    order = order_of(of, found.thread, line)
    first = np.flatnonzero(begins(of[order], found.thread[order], line[order]))
    if not len(first):
        return np.full(size, np.nan)
    uses = np.add.reduceat(found.count[order], first).astype(np.float64)
    earliest = np.minimum.reduceat(found.first[order], first)
    latest = np.maximum.reduceat(found.last[order], first)
    number = of[order][first]
    distance = np.bincount(number, (latest - earliest).astype(np.float64), size)
    between = np.bincount(number, uses - 1, size)
    return np.where(between > 0, distance / np.maximum(between, 1), np.nan)


def _falsely_shared(found: DataAccesses, objects: _Objects, top: int | None) -> Table:
    """Lines that several threads of a process use, of which one stores to words of its own."""
    line, word = (found.address >> np.uint64(bits) for bits in (_LINE_BITS, _WORD_BITS))
    shared, home = distinct_rows(found.process, line)
    words, of_word = distinct_rows(found.process, word)
    threads = _different(home, found.thread, len(shared))
    users = _different(of_word, found.thread, len(words))
    is_own_store = found.is_store & (users[of_word] == 1) & (threads[home] > 1)
    stores = sums_at(home[is_own_store], found.count[is_own_store], len(shared))
    count = sums_at(home, found.count, len(shared))
    order = np.flatnonzero(stores)
    order = order[np.argsort(-count[order].astype(np.int64), kind="stable")]
    rows = order[:top]
    first = shared[rows]
    own = np.flatnonzero(is_own_store)
    stored = {number: own[at] for number, at in rows_by(home[own])}
    fields: list[Value] = [objects.used_fields(stored[row]) for row in rows.tolist()]
    columns: list[tuple[Column, list[Value]]] = [
        (Column("samples", "samples", Unit.COUNT, FIGURE), count[rows].tolist()),
        (Column("own_stores", "stores to own words", Unit.COUNT, FIGURE), stores[rows].tolist()),
        (Column("threads", "threads", Unit.COUNT, FIGURE), threads[rows].tolist()),
        (_SYMBOL, [objects.name(number) for number in objects.of[first].tolist()]),
        (Column("fields", "own fields", Unit.TEXT), fields),
        (_ADDRESS, (line[first] << np.uint64(_LINE_BITS)).tolist()),
    ]
    notes = (_WHY_SHARED,) if len(rows) else ()
    return build(f"{NAME}-false-sharing", _SHARED, columns, notes=notes, found=len(order))
