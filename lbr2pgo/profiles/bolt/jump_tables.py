"""Jump tables as BOLT recognises them (BOLT: BinaryContext.cpp, analyzeJumpTable).

A table holds addresses (8 bytes) or distances from its own start (4 bytes) to places in one
function. Where it ends is not written anywhere: it goes on for as long as its entries make sense.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.profiles.bolt.lines import Lines
from lbr2pgo.profiles.bolt.relocations import CodeReferences
from lbr2pgo.profiles.bolt.x86_jump_tables import TableUse, rip_relative_leas, table_uses
from lbr2pgo.program.elf.headers import SHT_NOBITS, Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import I64, U64, Bools


@dataclass(frozen=True, slots=True)
class JumpTables:
    """Targets of all tables that were recognised, one row for each target."""

    target: U64
    function: I64
    """Function whose table it is; the target may lie in one of its fragments."""
    jump: U64
    """Address of the jump that uses the table, 0 if it is not known."""


def find_jump_tables(
    image: Image, functions: BoltFunctions, lines: Lines, references: CodeReferences
) -> JumpTables:
    """Tables that the functions of `lines` refer to."""
    uses = list(table_uses(lines)) if image.machine == "x86-64" else []
    if references.present:
        uses += _referred_distances(lines, references)
    reader = _Reader(image, functions, lines, references)
    limits = sorted({use.table for use in uses})
    rows = [
        (target, use.function, use.jump) for use in uses for target in reader.targets(use, limits)
    ]
    columns = np.array(rows, np.uint64).reshape(-1, 3)
    return JumpTables(columns[:, 0], columns[:, 1].astype(np.int64), columns[:, 2])


def _referred_distances(lines: Lines, references: CodeReferences) -> Iterator[TableUse]:
    """Tables whose address some instruction takes, though perhaps not right before its jump."""
    rows, tables = rip_relative_leas(lines)
    kept = np.isin(tables, references.distances)
    for row, table in zip(rows[kept].tolist(), tables[kept].tolist(), strict=True):
        yield TableUse(table, int(lines.function[row]), 0, True)


class _Reader:
    """Reads tables entry by entry, as far as they make sense."""

    _CHUNK = 256

    def __init__(
        self, image: Image, functions: BoltFunctions, lines: Lines, references: CodeReferences
    ) -> None:
        self._image = image
        self._functions = functions
        self._lines = lines
        self._references = references
        self._known: dict[tuple[int, int, bool], list[int]] = {}
        self._sections = [
            s for s in image.sections if s.is_alloc and not s.is_code and s.type != SHT_NOBITS
        ]

    def targets(self, use: TableUse, limits: list[int]) -> list[int]:
        """Distinct targets inside functions; empty if this is no table."""
        key = use.table, use.function, use.is_distances
        if key not in self._known:
            self._known[key] = self._read(use, limits)
        return self._known[key]

    def _read(self, use: TableUse, limits: list[int]) -> list[int]:
        """One real target is enough with a special one: the start or the end of the function."""
        section = next((s for s in self._sections if s.address <= use.table < s.end), None)
        if section is None or (self._references.present and not use.is_distances):
            return []
        after = bisect_right(limits, use.table)
        end = min(section.end, limits[after]) if after < len(limits) else section.end
        values = self._sensible(use, section, end)
        function = use.function
        start, past = int(self._functions.start[function]), int(self._functions.end[function])
        real = values[(values != start) & (values != past)]
        is_table = len(real) + (len(real) < len(values)) >= 2
        return np.unique(real).tolist() if is_table else []

    def _sensible(self, use: TableUse, section: Section, end: int) -> U64:
        """Values up to the first entry that can't belong to the table."""
        size = 4 if use.is_distances else 8
        content = self._image.contents(section) or memoryview(b"")
        kept: list[U64] = []
        for at in range(use.table, end - size + 1, size * self._CHUNK):
            count = min(self._CHUNK, (end - at) // size)
            raw = content[at - section.address : at - section.address + count * size]
            values = _values(raw, use)
            places = np.uint64(at) + np.arange(len(values), dtype=np.uint64) * np.uint64(size)
            good = self._are_entries(use, places, values)
            stop = len(good) if good.all() else int(np.argmin(good))
            kept.append(values[:stop])
            if stop < self._CHUNK:
                break
        return np.concatenate([np.zeros(0, np.uint64), *kept])

    def _are_entries(self, use: TableUse, places: U64, values: U64) -> Bools:
        """(n,): whether each value may be an entry of a table of that function."""
        functions = self._functions
        at = functions.containing(values)
        related = (at >= 0) & (functions.family[at] == functions.family[use.function])
        real = related & (values < functions.end[at]) & (self._lines.at(values) >= 0)
        special = (values == functions.start[use.function]) | (
            values == functions.end[use.function]
        )
        good: Bools = real | special
        if self._references.present:
            good &= np.isin(places, self._references.distances)
        return good


def _values(raw: memoryview, use: TableUse) -> U64:
    """Addresses that entries stand for."""
    if not use.is_distances:
        return np.frombuffer(raw[: len(raw) // 8 * 8], "<u8").astype(np.uint64)
    distances = np.frombuffer(raw[: len(raw) // 4 * 4], "<i4").astype(np.int64)
    return distances.astype(np.uint64) + np.uint64(use.table)
