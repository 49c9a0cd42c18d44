"""Jump tables as BOLT recognises them (BOLT: BinaryContext.cpp, analyzeJumpTable).

A table holds addresses (8 bytes) or distances from its own start (4 bytes) to places in one
function. Where it ends is not written anywhere: it goes on for as long as its entries make sense.
All tables are read at once, a stretch of each at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.program.blocks.idioms import Idioms, TableUses
from lbr2pgo.program.blocks.references import CodeReferences
from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, begins, distinct
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import table

_DISTANCE, _ADDRESS = 4, 8
"""Bytes of an entry."""
_SMALLEST = 8
"""Bytes of two distances; one is no table."""
_STRETCH = 32
"""Entries of each table that are read at a time."""


@table
class JumpTables:
    """Targets of all tables that were recognised, one row for each target of each use."""

    target: ImageAddresses
    function: I64
    """Function whose table it is; the target may lie in one of its fragments."""
    jump: ImageAddresses
    """Address of the jump that uses the table, 0 if it is not known."""


def find_jump_tables(
    image: Image, code: Disassembly, references: CodeReferences, idioms: Idioms
) -> JumpTables:
    """Tables that the functions of `code` refer to."""
    uses = idioms.jump_tables(code)
    if references.present:
        uses = uses.joined(_referred_distances(code, references, idioms))
    keys = np.column_stack([uses.table, uses.function.view(np.uint64), uses.is_distances])
    keys, used = np.unique(keys, axis=0, return_inverse=True)
    tables = _Tables(keys[:, 0], keys[:, 1].view(np.int64), keys[:, 2] > 0)
    table, target = _targets(tables, _Reader(image, code, references).entries(tables), code)
    first, past = np.searchsorted(table, used), np.searchsorted(table, used, side="right")
    return JumpTables(
        target[numbers_in(first, past)],
        np.repeat(uses.function, past - first),
        np.repeat(uses.jump, past - first),
    )


@table
class TableEntries:
    """Entries of tables whose jumps are known, in their order; columns of length n."""

    jump: ImageAddresses
    index: I64
    target: ImageAddresses


def table_entries(
    image: Image, code: Disassembly, references: CodeReferences, idioms: Idioms
) -> TableEntries:
    """What each entry of the tables of `code` leads to; where a table ends is a guess, as above."""
    uses = idioms.jump_tables(code)
    keys = np.column_stack([uses.table, uses.function.view(np.uint64), uses.is_distances])
    keys, used = np.unique(keys, axis=0, return_inverse=True)
    tables = _Tables(keys[:, 0], keys[:, 1].view(np.int64), keys[:, 2] > 0)
    table, target = _Reader(image, code, references).entries(tables)
    order = np.argsort(table, kind="stable")
    table, target = table[order], target[order]
    used = used.reshape(-1)
    first, past = np.searchsorted(table, used), np.searchsorted(table, used, side="right")
    rows = numbers_in(first, past)
    return TableEntries(
        np.repeat(uses.jump, past - first), rows - np.repeat(first, past - first), target[rows]
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """What may be tables; columns of length n."""

    address: ImageAddresses
    function: I64
    is_distances: Bools


def _referred_distances(code: Disassembly, references: CodeReferences, idioms: Idioms) -> TableUses:
    """Tables whose address some instruction takes, though perhaps not right before its jump."""
    rows, tables = idioms.taken_addresses(code)
    kept = among(tables, references.distances)
    function = code.function[rows[kept]]
    none = image_addresses(np.zeros(len(function), np.uint64))
    return TableUses(tables[kept], function, none, np.ones(len(function), np.bool_))


def _targets(
    tables: _Tables, entries: tuple[I64, ImageAddresses], code: Disassembly
) -> tuple[I64, ImageAddresses]:
    """Tables (m,) and their distinct targets inside functions, ordered; none of what is no table.

    One real target is enough with a special one: the start or the end of the function.
    """
    table, value = entries
    function = tables.function[table]
    special = (value == code.functions.start[function]) | (value == code.functions.end[function])
    real, others = (
        np.bincount(table[rows], minlength=len(tables.address)) for rows in (~special, special)
    )
    kept = ~special & (real + (others > 0) >= 2)[table]
    table, value = table[kept], value[kept]
    order = np.lexsort((value, table))
    table, value = table[order], value[order]
    is_first = begins(table, value)
    return table[is_first], value[is_first]


class _Reader:
    """Reads tables entry by entry, as far as they make sense."""

    def __init__(self, image: Image, code: Disassembly, references: CodeReferences) -> None:
        self._image, self._code, self._references = image, code, references

    def entries(self, tables: _Tables) -> tuple[I64, ImageAddresses]:
        """Tables and their entries (m,), up to the first that can't belong to the table."""
        found = [(np.zeros(0, np.int64), np.zeros(0, np.uint64))]
        for section, rows in self._by_section(tables):
            for size in (_DISTANCE,) if self._references.present else (_DISTANCE, _ADDRESS):
                chosen = rows[tables.is_distances[rows] == (size == _DISTANCE)]
                found += self._read(tables, chosen, section, size)
        return np.concatenate([t for t, _ in found]), np.concatenate([v for _, v in found])

    def _by_section(self, tables: _Tables) -> Iterator[tuple[Section, I64]]:
        """Sections of data, and the tables in each."""
        left = np.ones(len(tables.address), np.bool_)
        for section in self._image.sections:
            if section.is_alloc and not section.is_code and section.is_stored:
                held = left & (tables.address >= section.address) & (tables.address < section.end)
                left &= ~held
                if held.any() and section.size >= _SMALLEST:
                    yield section, np.flatnonzero(held)

    def _read(
        self, tables: _Tables, rows: I64, section: Section, size: int
    ) -> Iterator[tuple[I64, ImageAddresses]]:
        """Tables and entries, a stretch of each table at a time; a table ends before the next."""
        content = self._image.contents(section)
        if content is None:
            return
        data = np.frombuffer(content, np.uint8)
        starts = np.append(distinct(tables.address), np.uint64(section.end))
        end = np.minimum(starts[np.searchsorted(starts, tables.address[rows], "right")], starts[-1])
        at = tables.address[rows]
        steps = np.arange(_STRETCH)
        while len(rows):
            place = image_addresses(at[:, np.newaxis] + (steps * size).astype(np.uint64))
            value = image_addresses(_values(data, place - np.uint64(section.address), size))
            value += tables.address[rows, np.newaxis] if size == _DISTANCE else np.uint64(0)
            function = np.broadcast_to(tables.function[rows, np.newaxis], place.shape)
            good = place + np.uint64(size) <= end[:, np.newaxis]
            good[good] &= self._are_entries(function[good], place[good], value[good])
            count = np.where(good.all(axis=1), _STRETCH, np.argmin(good, axis=1))
            yield np.repeat(rows, count), value[steps < count[:, np.newaxis]]
            goes_on = count == _STRETCH
            rows, end, at = rows[goes_on], end[goes_on], place[goes_on, -1] + np.uint64(size)

    def _are_entries(self, function: I64, places: ImageAddresses, values: ImageAddresses) -> Bools:
        """(n,): whether each value may be an entry of a table of its function."""
        functions = self._code.functions
        at = functions.containing(values)
        related = (at >= 0) & (functions.parent[at] == functions.parent[function])
        real = related & (values < functions.end[at]) & (self._code.at(values) >= 0)
        special = (values == functions.start[function]) | (values == functions.end[function])
        good: Bools = real | special
        if self._references.present:
            good &= among(places, self._references.distances)
        return good


def _values(data: U8, offset: U64, size: int) -> U64:
    """Signed numbers of this size at (n, m) offsets, those behind the end whatever they are."""
    at = np.minimum(offset, np.uint64(len(data) - size)).astype(np.int64)
    fields = data[at[..., np.newaxis] + np.arange(size)]
    values: U64 = fields.view(f"<i{size}")[..., 0].astype(np.int64).view(np.uint64)
    return values
