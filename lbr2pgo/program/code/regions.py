"""Functions of an image: disjoint pieces of code, built from its symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.elf.symbols import STB_LOCAL, STT_NOTYPE, Symbols
from lbr2pgo.support.addresses import LAST_ADDRESS, ByteRanges, PlacedAddresses, placed_array
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct, roots_of
from lbr2pgo.support.intervals import interval_of, numbers_in, offsets_of
from lbr2pgo.support.tables import Tabular, ascending, same_length, seal

_FRAGMENT = re.compile(rb"(.+?)\.(?:cold|warm|part|__part|eh)(?:\.\d+)?")
"""Names of pieces that compilers split off. gcc: `f.cold`, `f.part.0`; LLVM: `f.cold`, `f.cold.1`
(HotColdSplitting.cpp), `f.__part.1`, `f.eh` (BasicBlockSections.cpp); BOLT: `f.warm`,
`f.cold.0`."""
_FRAGMENT_HINTS = (b".cold", b".warm", b".part", b".__part", b".eh\0")


@dataclass(frozen=True)
class Functions(Tabular):
    """Pieces of code that do not overlap, ordered by address; arrays of n rows."""

    start: PlacedAddresses
    end: PlacedAddresses
    """First address behind each function."""
    symbol: I64
    """Row in `symbols` that names it best, -1 for code that no symbol names."""
    entry: PlacedAddresses
    """(k,), ordered: addresses of function symbols inside another function."""
    symbols: Symbols = field(repr=False)
    health: Mapping[str, int] = field(default_factory=dict)
    """What was mended: a reason in words, and how many."""
    stubs: Mapping[int, str] = field(default_factory=dict, repr=False)
    """Names of entries of linkage tables, which have no symbol, by their start."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "start", "end", "symbol")
        ascending(self, "start")

    @property
    def ranges(self) -> ByteRanges:
        """The bytes of each."""
        return ByteRanges(self.start, self.end)

    @cached_property
    def name(self) -> Names:
        """Best name: of global, weak and local symbols the first; "" where there is no symbol."""
        return self.symbols.names.take(self.symbol)

    @cached_property
    def is_stub(self) -> Bools:
        """(n,): which are entries of linkage tables."""
        stub: Bools = np.isin(self.start, placed_array(self.stubs)) & (self.symbol < 0)
        return stub

    def label(self, function: int) -> str:
        """A function's name, that of a linkage table's entry too; "" for code without one."""
        return self.name[function] or self.stubs.get(int(self.start[function]), "")

    @cached_property
    def parent(self) -> I64:
        """The function that a split-off fragment belongs to, itself for all others."""
        return _parents(self)

    def aliases(self, function: int) -> tuple[str, ...]:
        """All names of function symbols at its start, in the symbol table's order."""
        start = self.start[function]
        first = np.searchsorted(self.symbols.start, start, side="left")
        rows = np.arange(first, np.searchsorted(self.symbols.start, start, side="right"))
        chosen = self.symbols.is_function[rows] | (rows == self.symbol[function])
        return tuple(self.symbols.names[row] for row in rows[chosen].tolist())

    def by_name(self, name: str) -> int | None:
        """The function that a symbol of this name starts or lies in, or the stub of this name."""
        row = self.symbols.by_name(name)
        at = [start for start, stub in self.stubs.items() if stub == name][:1]
        if row is not None:
            at = [int(self.symbols.start[row])]
        function = int(self.containing(placed_array(at))[0]) if at else -1
        return None if function < 0 else function

    def containing(self, addresses: PlacedAddresses) -> I64:
        """For each address the function that holds it, -1 where none does."""
        return interval_of(self.start, self.end, addresses)

    def families(self, functions: I64) -> I64:
        """These functions, their parents and all fragments of those, ordered."""
        order, parent = self._by_parent
        roots = distinct(self.parent[functions])
        first = np.searchsorted(parent, roots, side="left")
        past = np.searchsorted(parent, roots, side="right")
        return np.sort(order[numbers_in(first, past)])

    def entries(self, functions: I64) -> PlacedAddresses:
        """Where these functions, which are ordered, start, and the symbols inside them."""
        first = np.searchsorted(self.entry, self.start[functions])
        past = np.searchsorted(self.entry, self.end[functions])
        return np.concatenate([self.start[functions], self.entry[numbers_in(first, past)]])

    @cached_property
    def _by_parent(self) -> tuple[I64, I64]:
        order = np.argsort(self.parent, kind="stable")
        return order, self.parent[order]

    def with_gaps(
        self,
        code: ByteRanges,
        cuts: PlacedAddresses | None = None,
        stubs: Mapping[int, str] | None = None,
    ) -> Functions:
        """As this, with an unnamed function wherever code lies in none.

        `cuts` are addresses where such a function ends and another one starts; so do `stubs`,
        which have names.
        """
        stubs = stubs or {}
        edges = np.concatenate([placed_array(stubs), placed_array(()) if cuts is None else cuts])
        new = cut(self._gaps(code), edges)
        order = np.argsort(np.concatenate([self.start, new.start]))
        return replace(
            self,
            start=np.concatenate([self.start, new.start])[order],
            end=np.concatenate([self.end, new.end])[order],
            symbol=np.concatenate([self.symbol, np.full(len(new), -1)])[order],
            stubs=stubs,
        )

    def _gaps(self, code: ByteRanges) -> ByteRanges:
        """What of each range no function has: from its start or a function's end to the next."""
        first = np.searchsorted(self.end, code.start, side="right")
        past = np.searchsorted(self.start, code.end, side="left")
        inside, bounds = numbers_in(first, past), offsets_of(past - first)
        start = np.insert(self.end[inside], bounds[:-1], code.start)
        end = np.insert(self.start[inside], bounds[1:], code.end)
        left = start < end
        return ByteRanges(start[left], end[left])


def cut(ranges: ByteRanges, cuts: PlacedAddresses) -> ByteRanges:
    """The pieces that these ranges, ordered and disjoint, fall into."""
    start = distinct(np.concatenate((ranges.start, cuts)))
    at = ranges.around(start)
    start, at = start[at >= 0], at[at >= 0]
    following = np.concatenate((start[1:], ranges.end[-1:]))
    return ByteRanges(start, np.minimum(following, ranges.end[at]))


def code_ranges(image: Image) -> ByteRanges:
    """Where code is, disjoint and ordered.

    By executable sections; by executable segments in a file without a section table.
    """
    ranges = [(s.address, s.end) for s in image.sections if s.is_code and s.size]
    if not ranges:
        ranges = [
            (s.address, s.address + s.file_size) for s in image.layout.segments if s.executable
        ]
    return _disjoint(ranges)


def _disjoint(ranges: list[tuple[int, int]]) -> ByteRanges:
    """Cut each range where the next begins, and to 64 bits."""
    start = placed_array([start for start, _ in ranges])
    end = placed_array([min(end, LAST_ADDRESS) for _, end in ranges])
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    end[:-1] = np.minimum(end[:-1], start[1:])
    left = start < end
    return ByteRanges(start[left], end[left])


def build_functions(symbols: Symbols, code: ByteRanges) -> Functions:
    """Functions from the symbols that lie in these code ranges.

    Symbols at one address are one function, as long as the longest. One without a size, or with
    a size past the end of its range, ends where the next function or the range ends; if two
    overlap, the first ends where the second starts; one inside another is an entry of that.
    """
    rows, limit = _candidates(symbols, code)
    start, first = np.unique(symbols.start[rows], return_index=True)
    if not len(start):
        return Functions(start, start, np.empty(0, np.int64), start, symbols)
    size_end = np.maximum.reduceat(symbols.end[rows], first)
    limit = limit[first]
    too_long = size_end > limit
    end = np.where(too_long, start, size_end)
    before = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    inside = (start < before) & (end <= before)
    best = np.append(first[1:], len(rows)) - 1
    kept = np.flatnonzero(~inside)
    following = np.append(start[kept][1:], np.uint64(0xFFFFFFFFFFFFFFFF))
    open_end = np.where(end > start, end, limit)[kept]
    return Functions(
        start=start[kept],
        end=np.minimum(open_end, following),
        symbol=rows[best][kept],
        entry=start[inside],
        symbols=symbols,
        health=_health(
            {
                "functions longer than their section": int(too_long.sum()),
                "functions that overlap the next": int(
                    (open_end > following)[end[kept] > start[kept]].sum()
                ),
            }
        ),
    )


def _health(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}


def _candidates(symbols: Symbols, code: ByteRanges) -> tuple[I64, PlacedAddresses]:
    """Rows of symbols that start a function, and the end of the code range each lies in.

    Ordered by start, the best of equal starts last. Untyped global symbols, which assembly
    leaves, count where no function spans them.
    """
    untyped = (symbols.kind == STT_NOTYPE) & (symbols.binding != STB_LOCAL)
    untyped[untyped] = symbols.covering(symbols.start[untyped]) < 0
    rows = np.flatnonzero(symbols.is_function | untyped)
    at = code.around(symbols.start[rows])
    rows, at = rows[at >= 0], at[at >= 0]
    order = np.lexsort(
        (-rows, -symbols.preference[rows], symbols.is_function[rows], symbols.start[rows])
    )
    return rows[order], code.end[at[order]]


def _parents(functions: Functions) -> I64:
    """Root of each fragment: first in its own source file, then global, then the only one."""
    parent = np.arange(len(functions))
    bases = {
        row: match[1]
        for row in functions.name.rows_holding(_FRAGMENT_HINTS).tolist()
        if (match := _FRAGMENT.fullmatch(functions.name.raw(row)))
    }
    candidates = functions.name.rows_of(set(bases.values()))
    for row, base in bases.items():
        found = _choose(functions, row, candidates.get(base, []))
        parent[row] = row if found is None else found
    return roots_of(parent)  # names only get shorter, so chains end


def _choose(functions: Functions, fragment: int, candidates: list[int]) -> int | None:
    symbols, symbol = functions.symbols, functions.symbol
    file = symbols.file.raw(symbol[fragment])
    same_file = [c for c in candidates if file and symbols.file.raw(symbol[c]) == file]
    shared = [c for c in candidates if symbols.binding[symbol[c]] != STB_LOCAL]
    best = same_file or shared or candidates
    return best[0] if len(best) == 1 else None
