"""Frames that tail calls left out of call stacks.

A function that ends in a jump to another one has no frame when that runs. Where only one way leads
from a call to the function that is above it in the call stack, by tail calls that were seen, these
are what is missing (LLVM: tools/llvm-profgen/MissingFrameInferrer.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions
from lbr2pgo.support.addresses import PlacedAddresses, placed_array
from lbr2pgo.support.arrays import I64, U64

MOST_JUMPS = 100
"""Longer ways are not looked for."""

Way = tuple[int, ...]
_NONE: tuple[int, Way] = (0, ())


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is missing between calls and functions."""

    call: PlacedAddresses
    function: I64
    """(p,) each: the call, and the function above it in call stacks."""
    offsets: I64
    """(p + 1,): the part of `jumps` that each pair owns."""
    jumps: PlacedAddresses
    """Tail calls, outermost first."""


class TailCalls:
    """The calls and tail calls that were seen, as a graph of functions."""

    def __init__(
        self,
        source: PlacedAddresses,
        target: PlacedAddresses,
        functions: DwarfFunctions,
        code: InstructionTable,
    ) -> None:
        """Of branches (b,); `code` holds the instructions at their sources."""
        self._calls: dict[int, list[int]] = {}
        self._jumps: dict[int, list[int]] = {}
        """By address, the functions that were called from there, in order."""
        self._from: dict[int, list[int]] = {}
        """The tail calls of each function."""
        self._known: dict[tuple[int, int], tuple[int, Way]] = {}
        self._visiting: set[int] = set()
        self._add(source, target, functions, code)
        self._targets = {function for reached in self._jumps.values() for function in reached}

    def _add(
        self,
        source: PlacedAddresses,
        target: PlacedAddresses,
        functions: DwarfFunctions,
        code: InstructionTable,
    ) -> None:
        kind = np.append(code.kind, -1)[code.index_of(source)]
        there, here = functions.containing(target), functions.containing(source)
        function = np.append(functions.function, -1)
        leaves = (here >= 0) & (there >= 0) & (here != there)
        is_call = np.isin(kind, CALLS) & (here >= 0) & (there >= 0)
        is_jump = leaves & (kind == Kind.INDIRECT_JUMP)
        is_jump |= leaves & (kind == Kind.JUMP) & (function[here] != function[there])
        callee = function[there].astype(np.uint64)
        _list(self._calls, source[is_call], callee[is_call])
        _list(self._jumps, source[is_jump], callee[is_jump])
        owner = function[here[is_jump]].astype(np.uint64)
        _list(self._from, owner, source[is_jump])

    def gaps(self, call: PlacedAddresses, function: I64) -> Gaps:
        """What is missing between calls (k,) and the functions above them in call stacks."""
        targets = np.array(sorted(self._targets), np.int64)
        rows = np.flatnonzero(np.isin(function, targets))
        ways = [self.missing(*pair) for pair in zip(
            call[rows].tolist(), function[rows].tolist(), strict=True
        )]  # fmt: skip
        sizes = np.array([len(way) for way in ways], np.int64)
        rows = rows[sizes > 0]
        offsets = np.concatenate(([0], np.cumsum(sizes[sizes > 0])))
        jumps = placed_array([jump for way in ways for jump in way])
        return Gaps(call[rows], function[rows], offsets, jumps)

    def missing(self, call: int, function: int) -> Way:
        """The tail calls on the only way from a call to a function; none if there are several."""
        called = self._calls.get(call, ())
        if function in called or function not in self._targets:
            return ()
        found, way = self._first_two(called, function)
        return way if found == 1 else ()

    def _first_two(self, functions: Iterable[int], target: int) -> tuple[int, Way]:
        """How many ways lead there, of more than one 2, and one of them."""
        found, way = _NONE
        for function in functions:
            more, one = self._ways(function, target)
            found, way = min(found + more, 2), one if more else way
            if found > 1:
                break
        return found, way

    def _ways(self, function: int, target: int) -> tuple[int, Way]:
        if function == target:
            return 1, ()
        if function in self._visiting or len(self._visiting) == MOST_JUMPS:
            return _NONE
        if (function, target) not in self._known:
            self._visiting.add(function)
            self._known[function, target] = self._ways_by_jumps(function, target)
            self._visiting.discard(function)
        return self._known[function, target]

    def _ways_by_jumps(self, function: int, target: int) -> tuple[int, Way]:
        found, way = _NONE
        for jump in self._from.get(function, ()):
            more, behind = self._first_two(self._jumps[jump], target)
            found, way = min(found + more, 2), (jump, *behind) if more else way
            if found > 1:
                break
        return found, way


def _list(known: dict[int, list[int]], keys: U64, values: U64) -> None:
    """Add the values of each key, in order, each once."""
    for key, value in np.unique(np.stack((keys, values), axis=1), axis=0).tolist():
        known.setdefault(key, []).append(value)
