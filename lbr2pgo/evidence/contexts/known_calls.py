"""Which call must have led from one function to another one, by what the program's code calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from lbr2pgo.evidence.contexts.unwound_code import TouchedCode
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.replay.replay import INDIRECT
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, placed_array
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.distinct import distinct

_LEAVING = (*CALLS, Kind.JUMP, Kind.COND, Kind.INDIRECT_JUMP)
_NO_FUNCTION = -1
_AT_ONCE = 2048
"""Functions whose code is looked at together."""


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Calls, and jumps from one function to another; columns of equal length."""

    address: U64
    owner: I64
    callee: I64
    is_call: Bools


class KnownCalls:
    """Calls and tail calls, read function by function as they are asked for.

    Direct ones are those of the code, and indirect ones went where they were seen to go. Functions
    are numbers of `Program.regions`, one for all parts of a function.
    """

    def __init__(self, code: TouchedCode, indirect_targets: Mapping[int, Sequence[int]]) -> None:
        """Targets by the address of the branch, as `Flow.indirect_targets` has them."""
        self._code, self._indirect = code, indirect_targets
        self._calls: dict[int, list[int]] = {}
        """Addresses of a function's calls."""
        self._callees: dict[int, set[int]] = {}
        """The functions that the call at an address leads to."""
        self._jumps: dict[int, set[int]] = {}
        """The functions that one ends in by a jump."""
        self._closed, self._ways = cache(self._with_jumps), cache(self._ways_from)

    def between(self, call: PlacedAddresses, inner: I64) -> U64:
        """The only call (n,) that can stand between each call and the function above it.

        That is one in a function which the first call leads to, and it leads to the inner one;
        tail calls may come before and behind it. 0 where there are none or several of them.
        Of a call through a pointer that was not seen it is the only one in the program.
        """
        self._read(set(self._code.functions_at(call).tolist()))
        around = {function for site in call.tolist() for function in self._callees[site]}
        around = self._read_with_jumps(around)
        called = {
            callee for f in around for site in self._calls[f] for callee in self._callees[site]
        }
        self._read_with_jumps(called)
        pairs = zip(call.tolist(), inner.tolist(), strict=True)
        return np.array([self._only(*pair) for pair in pairs], np.uint64)

    def _only(self, call: int, inner: int) -> int:
        if not self._callees[call]:
            return self._only_in_program(inner)
        return self._ways(call).get(inner, 0)

    def _ways_from(self, call: int) -> dict[int, int]:
        """By the functions that a second call may lead to that call, or 0 for several."""
        around = {function for callee in self._callees[call] for function in self._closed(callee)}
        found: dict[int, int] = {}
        for site in {site for function in around for site in self._calls[function]}:
            for callee in self._callees[site]:
                for inner in self._closed(callee):
                    found[inner] = site if found.get(inner, site) == site else 0
        return found

    def _only_in_program(self, inner: int) -> int:
        every, reached = self._every, np.array([inner])
        while True:
            leads = np.isin(every.callee, reached)
            longer = distinct(np.append(reached, every.owner[leads & ~every.is_call]))
            if len(longer) == len(reached):
                break
            reached = longer
        found = distinct(every.address[leads & every.is_call])
        return int(found[0]) if len(found) == 1 else 0

    @cached_property
    def _every(self) -> _Leaving:
        table = self._code.program.branches
        rows = np.flatnonzero(
            np.isin(table.kind, (*CALLS, Kind.JUMP, Kind.COND)) & table.has_target
        )
        seen = [(source, to) for source, targets in self._indirect.items() for to in targets]
        source = placed_array([source for source, _ in seen])
        address = np.concatenate((table.address[rows], source))
        target = np.concatenate((table.target[rows], placed_array([to for _, to in seen])))
        kind = table.kind[table.index_of(placed_addresses(address))]
        owner, callee = map(self._code.functions_at, map(placed_addresses, (address, target)))
        is_call = np.isin(kind, CALLS)
        kept = (callee != _NO_FUNCTION) & (is_call | (callee != owner))
        return _Leaving(address[kept], owner[kept], callee[kept], is_call[kept])

    def _with_jumps(self, function: int) -> frozenset[int]:
        """A function and all that it may end in."""
        # networkx takes 2.5 times as long for this (benchmarks/own_graphs.py), and loading it most
        # of the time that a small conversion takes.
        found, new = {function}, {function}
        while new:
            new = {target for f in new for target in self._jumps[f]} - found
            found |= new
        return frozenset(found)

    def _read_with_jumps(self, functions: set[int]) -> set[int]:
        """Read the code of functions and of all that they may end in; the numbers of all."""
        found, new = set[int](), functions
        while new:
            self._read(new)
            found |= new
            new = {target for f in new for target in self._jumps[f]} - found
        return found

    def _read(self, functions: set[int]) -> None:
        new = functions - self._calls.keys()
        if not new:
            return
        for function in new:
            self._calls[function], self._jumps[function] = [], set()
        for part in np.array_split(np.array(sorted(new)), len(new) // _AT_ONCE + 1):
            self._read_code(part)

    def _read_code(self, functions: I64) -> None:
        table = self._code.leaving(functions)
        owner = self._code.functions_at(table.address)
        rows = np.flatnonzero(np.isin(table.kind, _LEAVING) & np.isin(owner, functions))
        target = np.where(table.has_target[rows], table.target[rows], 0)
        direct = self._code.functions_at(placed_addresses(target))
        columns = (owner[rows], table.address[rows], table.kind[rows], direct)
        for function, address, kind, named in zip(*(c.tolist() for c in columns), strict=True):
            callees = {named} if kind not in INDIRECT else self._seen(address)
            callees.discard(_NO_FUNCTION)
            if kind in CALLS:
                self._calls[function].append(address)
                self._callees[address] = callees
            else:
                self._jumps[function] |= callees - {function}

    def _seen(self, address: int) -> set[int]:
        return set(self._code.functions_at(placed_array(self._indirect.get(address, ()))).tolist())
