"""What a build's code tells of the functions that it has probes of: calls, and words of code."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from lbr2pgo.profiles.carried.probe_flow import ProbeFlow
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.program.code.decode import texts
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeKind, ProbeTable
from lbr2pgo.support.addresses import LAST_ADDRESS, ByteRanges, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct, place_of
from lbr2pgo.support.intervals import numbers_in

UNSEEN = 255
"""In place of a kind: the optimizer took the probe away, or there is none of this number."""
_LAST = 0xFFFF
"""The largest number that clang gives a probe."""
_Key = tuple[int, int]
"""GUID of a function, and number of a probe."""
_NUMBER = re.compile(r"-?(?:0x)?[0-9a-f]+\b")
_REGISTER = re.compile(r"%\w+|\b[wxrsatv]\d+\b")
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
        rows = self._rows(np.array([number], np.uint64))
        rows = rows[self._table.tree.parent[self._table.node[rows]] < 0]
        address = placed_addresses(self._table.address[rows])
        regions = self._program.regions
        region = regions.containing(address)
        if (region < 0).any() or len(distinct(regions.parent[region])) != 1:
            return None
        return ProbeFlow(self._program, address, self._table.index[rows].astype(np.int64))

    def _rows(self, numbers: U64) -> I64:
        """The probes of these functions, wherever they were inlined."""
        order, sorted_numbers = self._by_function
        first = np.searchsorted(sorted_numbers, numbers, side="left")
        past = np.searchsorted(sorted_numbers, numbers, side="right")
        rows = np.sort(order[numbers_in(first, past)])
        return rows[self._table.index[rows] <= _LAST]

    @cached_property
    def _by_function(self) -> tuple[I64, U64]:
        number = self._table.tree.guid[self._table.node]
        order = np.argsort(number, kind="stable")
        return order, number[order]

    @cached_property
    def _table(self) -> ProbeTable:
        table = self._program.probes.table()
        if table.is_call.any():
            return table
        debug = DebugInfo(self._program.debug_files)
        return with_calls(table, self._program.branches.address, debug)

    def _read(self, numbers: U64) -> Iterator[tuple[int, ProbedFunction]]:
        rows = self._rows(numbers)
        callees, words = self._callees(numbers, rows), self._words(rows)
        kinds: dict[int, dict[int, int]] = {number: {} for number in numbers.tolist()}
        for number, index in callees:
            kinds[number][index] = ProbeKind.DIRECT_CALL
        seen = self._table.kind[rows].tolist()
        for (number, index), one in zip(self._keys(rows), seen, strict=True):
            kinds[number][index] = one
        for number, known in kinds.items():
            kind = np.full(max(known, default=0) + 1, UNSEEN, np.uint8)
            kind[list(known)] = list(known.values())
            keys = [(number, index) for index in range(len(kind))]
            called = [frozenset(callees.get(key, ())) for key in keys]
            yield number, ProbedFunction(kind, called, [words.get(key, Counter()) for key in keys])

    def _keys(self, rows: I64) -> Iterator[_Key]:
        table = self._table
        numbers = table.tree.guid[table.node[rows]].tolist()
        return zip(numbers, table.index[rows].tolist(), strict=True)

    def _callees(self, numbers: U64, rows: I64) -> dict[_Key, set[str]]:
        """The names of what calls of these functions call, and of what was inlined in place."""
        found: dict[_Key, set[str]] = defaultdict(set)
        tree = self._table.tree
        is_inlined = (
            (tree.site > 0) & (tree.site <= _LAST) & np.isin(tree.guid[tree.parent], numbers)
        )
        for node in np.flatnonzero(is_inlined).tolist():
            key = int(tree.guid[tree.parent[node]]), int(tree.site[node])
            found[key].add(_source_name(tree.name(node)))
        rows = rows[self._table.is_call[rows]]
        code, at = self._code_at(rows)
        is_direct = (at >= 0) & code.has_target[at]
        rows, target = rows[is_direct], code.target[at[is_direct]]
        regions = self._program.regions
        region = regions.containing(target)
        for key, number, to in zip(self._keys(rows), region.tolist(), target.tolist(), strict=True):
            if number >= 0 and int(regions.start[number]) == to:
                names = regions.aliases(number) or (regions.label(number).partition("@")[0],)
                found[key].update(_source_name(name) for name in names if name)
        return found

    def _words(self, rows: I64) -> dict[_Key, Counter[str]]:
        """Words of the code of block probes, up to the next one or the next jump."""
        rows = rows[self._table.kind[rows] == ProbeKind.BLOCK]
        code, at = self._code_at(rows)
        rows, at = rows[at >= 0], distinct(at[at >= 0])
        starts = code.address[at]
        jumps = np.flatnonzero(~np.isin(code.kind, (Kind.OTHER, *CALLS)))
        jump = np.append(jumps, len(code) - 1)[np.searchsorted(jumps, at)]
        probed = distinct(self._table.address[self._table.kind == ProbeKind.BLOCK])
        behind = np.append(probed, LAST_ADDRESS)[np.searchsorted(probed, starts, side="right")]
        ends = placed_addresses(np.minimum(code.end_of(jump), behind))
        found: dict[_Key, Counter[str]] = defaultdict(Counter)
        if len(rows):
            read = texts(self._program.image, ByteRanges(starts, ends))
            words = [
                Counter(chain.from_iterable(_words_of(said) for _, _, said in lines))
                for lines in read
            ]
            places = place_of(self._table.address[rows], starts).tolist()
            for key, place in zip(self._keys(rows), places, strict=True):
                found[key].update(words[place])
        return found

    def _code_at(self, rows: I64) -> tuple[InstructionTable, I64]:
        """Instructions, and the row of the one at each of these probes; -1 where there is none."""
        address = placed_addresses(self._table.address[rows])
        code = self._program.instructions_for(address)
        return code, code.index_of(address)


def _source_name(name: str) -> str:
    """What the source calls it: linkage names of static functions have what they take in them."""
    return short_name(without_unique_suffix(name))


@lru_cache(1 << 16)
def _words_of(said: str) -> tuple[str, ...]:
    """What tells of an instruction, wherever it lies and whatever registers it has.

    >>> _words_of("movl 0x18(%rdi), %eax"), _words_of("leaq 0x2a10(%rip), %rsi")
    (('movl', '0x18'), ('leaq',))
    """
    operation, _, operands = said.partition(" ")
    if operation.startswith(("j", "b", "call")):
        return (operation,)
    return operation, *_NUMBER.findall(_REGISTER.sub("", _OWN_PLACE.sub("", operands)))
