"""What a build's code tells of the functions that it has probes of: calls, and words of code."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from lbr2pgo.profiles.carried.probe_flow import ProbeFlow
from lbr2pgo.program.code.decode import texts
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeKind, ProbeTable
from lbr2pgo.support.addresses import ByteRanges, PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct

UNSEEN = 255
"""In place of a kind: the optimizer took the probe away, or there is none of this number."""
_MOST_COPIES = 8
"""Of a probe whose code is read: the code of all is much alike."""
_NUMBER = re.compile(r"-?(?:0x)?[0-9a-f]+\b")
_OWN_PLACE = re.compile(r"[-\w]*\(%r(?:ip|sp|bp)\)|\[sp.*?\]|\(sp\)")
"""Operands that move with the code, or with the frame."""


@dataclass(frozen=True, slots=True)
class ProbedFunction:
    """The probes of one function, by their numbers: row 0 is none."""

    kind: U8
    """`ProbeKind`, or `UNSEEN`."""
    callees: Sequence[frozenset[str]]
    """What each call probe calls, or had inlined, as far as the code tells."""
    words: Sequence[Counter[str]]
    """Of the code from each block's probe on, up to the next probe or jump."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def seen(self) -> I64:
        """Those that have code."""
        return np.flatnonzero(self.kind != UNSEEN)

    def told(self, row: int) -> frozenset[str]:
        """What tells of a probe."""
        return self.callees[row] or frozenset(self.words[row])


_NOTHING = ProbedFunction(np.empty(0, np.uint8), (), ())


class ProbedCode:
    """Functions of a program that had probes when they were compiled, by their GUIDs."""

    def __init__(self, program: Program) -> None:
        self._program = program
        known = self._known = program.probes.descriptors
        self._row = {number: row for row, number in enumerate(known.guid.tolist())}
        self._functions: dict[int, ProbedFunction] = {}

    @property
    def numbers(self) -> Collection[int]:
        """Of all functions."""
        return self._row.keys()

    def has(self, number: int) -> bool:
        """Whether there is such a function."""
        return number in self._row

    def checksum(self, number: int) -> int:
        """Of a function's control flow; 0 where there is no such function."""
        return int(self._known.checksum[self._row[number]]) if self.has(number) else 0

    def is_ambiguous(self, number: int) -> bool:
        """Whether functions of its name differ."""
        return bool(self._known.is_ambiguous[self._row[number]])

    def name(self, number: int) -> str:
        """A function's linkage name."""
        return self._known.name(self._row[number])

    def source_name(self, number: int) -> str:
        """What the source calls it."""
        return _source_name(self.name(number))

    def read(self, numbers: Iterable[int]) -> None:
        """Read the code of functions; those that are asked for together are read together."""
        missing = sorted(set(numbers) - self._functions.keys())
        if missing:
            self._functions.update(self._read(np.array(missing, np.uint64)))

    def function(self, number: int) -> ProbedFunction:
        """One that was read; without probes where it has no code."""
        return self._functions.get(number, _NOTHING)

    def flow(self, number: int) -> ProbeFlow | None:
        """Of a function's own code; None where there is none, or of several functions."""
        tree = self._table.tree
        is_own = (tree.parent < 0) & (tree.guid == np.uint64(number))
        rows = np.flatnonzero(is_own[self._table.node])
        address = placed_addresses(self._table.address[rows])
        regions = self._program.regions
        if len(distinct(regions.parent[regions.containing(address)])) != 1:
            return None
        return ProbeFlow(self._program, address, self._table.index[rows].astype(np.int64))

    @cached_property
    def _table(self) -> ProbeTable:
        return self._program.probes.table()

    def _read(self, guids: U64) -> Iterator[tuple[int, ProbedFunction]]:
        table, tree = self._table, self._table.tree
        rows = np.flatnonzero(np.isin(tree.guid[table.node], guids))
        calls = rows[table.is_call[rows]]
        blocks = rows[table.kind[rows] == ProbeKind.BLOCK]
        sites = np.flatnonzero((tree.site > 0) & np.isin(tree.guid[tree.parent], guids))
        callees: dict[tuple[int, int], set[str]] = defaultdict(set)
        for node in sites.tolist():
            key = int(tree.guid[tree.parent[node]]), int(tree.site[node])
            callees[key].add(_source_name(tree.name(node)))
        for row, names in self._called(calls):
            callees[self._key(row)].update(names)
        words: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        for row, found in self._words(blocks):
            words[self._key(row)].update(found)
        kinds: dict[int, dict[int, int]] = {guid: {} for guid in guids.tolist()}
        for row in rows.tolist():
            guid, index = self._key(row)
            kinds[guid][index] = int(table.kind[row])
        for guid, index in callees:
            kinds[guid].setdefault(index, ProbeKind.DIRECT_CALL)
        for guid, of_index in kinds.items():
            size = max(of_index, default=0) + 1
            kind = np.full(size, UNSEEN, np.uint8)
            kind[list(of_index)] = list(of_index.values())
            yield (
                guid,
                ProbedFunction(
                    kind,
                    [frozenset(callees.get((guid, index), ())) for index in range(size)],
                    [words.get((guid, index), Counter()) for index in range(size)],
                ),
            )

    def _key(self, row: int) -> tuple[int, int]:
        table = self._table
        return int(table.tree.guid[table.node[row]]), int(table.index[row])

    def _called(self, rows: I64) -> Iterator[tuple[int, set[str]]]:
        """The names of what call probes call, of those with a direct call."""
        address = placed_addresses(self._table.address[rows])
        code = self._program.instructions_for(address)
        at = code.index_of(address)
        is_direct = (at >= 0) & code.has_target[at]
        rows, target = rows[is_direct], code.target[at[is_direct]]
        regions = self._program.regions
        region = regions.containing(target)
        for row, number, to in zip(rows.tolist(), region.tolist(), target.tolist(), strict=True):
            if number >= 0 and int(regions.start[number]) == to:
                names = regions.aliases(number) or (regions.label(number).partition("@")[0],)
                yield row, {_source_name(name) for name in names if name}

    def _words(self, rows: I64) -> Iterator[tuple[int, Counter[str]]]:
        """Words of the code of block probes."""
        rows = rows[_rank(self._table, rows) < _MOST_COPIES]
        address = placed_addresses(self._table.address[rows])
        starts = distinct(address)
        ends = self._ends(starts)
        found = {
            start: Counter(word for _, _, text in lines for word in _words_of(text))
            for start, lines in zip(
                starts.tolist(), texts(self._program.image, ByteRanges(starts, ends)), strict=True
            )
        }
        for row, start in zip(rows.tolist(), address.tolist(), strict=True):
            yield row, found[start]

    def _ends(self, starts: PlacedAddresses) -> PlacedAddresses:
        """Behind the last instruction before the next probe, or behind the next jump."""
        code = self._program.instructions_for(starts)
        probed = distinct(self._table.address[self._table.kind == ProbeKind.BLOCK])
        following = np.searchsorted(probed, starts, side="right")
        end = np.append(probed, np.iinfo(np.uint64).max)[following]
        leaving = np.flatnonzero(~np.isin(code.kind, (Kind.OTHER, *CALLS)))
        behind = np.append(code.end_of(leaving), code.end[-1:])
        jump = behind[np.searchsorted(code.address[leaving], starts)]
        return placed_addresses(np.minimum(end, np.maximum(jump, starts)))


def _source_name(name: str) -> str:
    """What the source calls it: linkage names of static functions have what they take in them."""
    return short_name(without_unique_suffix(name))


def _rank(table: ProbeTable, rows: I64) -> I64:
    """How many copies of the same probe stand before each row."""
    seen: Counter[tuple[int, int]] = Counter()
    rank = []
    guids, indexes = table.tree.guid[table.node[rows]], table.index[rows]
    for key in zip(guids.tolist(), indexes.tolist(), strict=True):
        rank.append(seen[key])
        seen[key] += 1
    return np.array(rank, np.int64)


def _words_of(text: str) -> Iterable[str]:
    """What tells of an instruction, wherever it lies and whatever registers it has.

    >>> list(_words_of("movl 0x18(%rdi), %eax")), list(_words_of("leaq 0x2a10(%rip), %rsi"))
    (['movl', '0x18'], ['leaq'])
    """
    operation, _, operands = text.partition(" ")
    yield operation
    if not operation.startswith(("j", "b", "call")):
        yield from _NUMBER.findall(
            re.sub(r"%\w+|\b[wxrsatv]\d+\b", "", _OWN_PLACE.sub("", operands))
        )
