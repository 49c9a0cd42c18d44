"""Blocks and edges of many functions at once, as arrays: what flow is inferred over.

`cfg` has the same of one function, with all that is known of its calls and exits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.distinct import begins, distinct
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, same_length, seal, table


@dataclass(frozen=True, slots=True)
class CodeGraph(Tabular):
    """Nodes are the blocks, ordered by function and address, and hubs.

    A *hub* stands between indirect jumps and all places that they may lead to: n jumps with m
    targets are n + m edges. Jumps whose table is known have one each, the others of a function
    share one.
    """

    function: I64
    """(n,), ascending: root of the family, fragments included, of each node."""
    first: I64
    """(n,): rows of the instruction table with each block's first and last instruction; -1: a
    hub."""
    last: I64
    is_entry: Bools
    """(n,): whether the block may be reached from outside of its function."""
    is_exit: Bools
    """(n,): whether execution may leave the function at its end."""
    source: I64
    """(m,): nodes of each edge; edges are there once, ordered."""
    target: I64
    is_fall: Bools
    """(m,): whether execution goes straight on."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "function", "first", "last", "is_entry", "is_exit")
        same_length(self, "source", "target", "is_fall")

    @property
    def is_hub(self) -> Bools:
        """(n,): which nodes are hubs."""
        hub: Bools = self.first < 0
        return hub

    def nodes_of(self, rows: I64) -> I64:
        """The block that holds each row (k,) of the instruction table."""
        blocks = np.flatnonzero(~self.is_hub)
        blocks = blocks[np.argsort(self.first[blocks], kind="stable")]
        node: I64 = blocks[last_at_or_below(self.first[blocks], rows)]
        return node


@table
class IndirectTargets:
    """Where indirect jumps may lead, one row for each pair; jump 0: any one of its function."""

    jump: PlacedAddresses
    target: PlacedAddresses


def code_graph(
    code: InstructionTable, functions: Functions, indirect: IndirectTargets | None = None
) -> CodeGraph:
    """The graph of whole functions.

    Indirect jumps whose targets are told lead there. All others of a function lead to targets that
    are told of any jump, and to every block that nothing else leads to: labels whose address was
    taken, cases of a switch. Those of the procedure linkage table leave their function.
    """
    region = functions.containing(code.address)
    owner = np.append(functions.parent, -1)[region]
    is_stub = np.append(functions.is_stub, False)[region]
    jumps, tables = _Jumps.of(code, owner), _Tables.of(code, owner, indirect)
    own = distinct(region[begins(region)])
    entered = np.append(code.index_of(functions.entries(own[own >= 0])), jumps.crossing)
    entered = entered[entered >= 0]
    starts = _starts(code, owner)
    for rows in (entered, jumps.target, tables.target, tables.label):
        starts[rows] = True
    return _Blocks(code, owner, is_stub, np.flatnonzero(starts)).graph(jumps, entered, tables)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Targets of indirect jumps, as rows of the instruction table."""

    jump: I64
    """(k,): of each pair."""
    target: I64
    label: I64
    """(l,): targets of any jump of their function."""

    @classmethod
    def of(cls, code: InstructionTable, owner: I64, told: IndirectTargets | None) -> _Tables:
        if told is None:
            return cls(*np.zeros((3, 0), np.int64))
        jump, target = code.index_of(told.jump), code.index_of(told.target)
        is_label = (told.jump == 0) & (target >= 0)
        inside = (jump >= 0) & (target >= 0) & (owner[jump] == owner[target])
        inside &= code.kind[jump] == Kind.INDIRECT_JUMP
        return cls(jump[inside], target[inside], target[is_label])


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Direct jumps, as rows of the instruction table."""

    row: I64
    """(k,): those within a function."""
    target: I64
    leaving: I64
    """Those that leave their function."""
    crossing: I64
    """Where these lead."""

    @classmethod
    def of(cls, code: InstructionTable, owner: I64) -> _Jumps:
        rows = np.flatnonzero(np.isin(code.kind, (Kind.COND, Kind.JUMP)))
        target = np.where(code.has_target[rows], code.index_of(code.target[rows]), -1)
        inside = (target >= 0) & (owner[target] == owner[rows])
        return cls(rows[inside], target[inside], rows[~inside], target[~inside])


def _starts(code: InstructionTable, owner: I64) -> Bools:
    """(r,): whether each instruction starts a block, by the one before it alone."""
    starts = np.ones(len(code), np.bool_)
    ends = code.ends_line | (code.kind == Kind.COND)
    starts[1:] = ends[:-1] | (np.diff(code.run) != 0) | (np.diff(owner) != 0)
    return starts


@dataclass(frozen=True, slots=True)
class _Hubs:
    """Hubs, and the blocks before and behind them, each with the number of its hub."""

    owner: I64
    """(h,): the function of each hub."""
    into: I64
    of_into: I64
    out: I64
    of_out: I64


class _Blocks:
    """Blocks in the order of their addresses."""

    def __init__(self, code: InstructionTable, owner: I64, is_stub: Bools, first: I64) -> None:
        self._code, self._first = code, first
        self._last = np.append(first[1:], len(code))[: len(first)] - 1
        self._owner, self._is_stub = owner[first], is_stub[first]
        self._of = last_at_or_below(first, np.arange(len(code)))

    def graph(self, jumps: _Jumps, entered: I64, tables: _Tables) -> CodeGraph:
        """The graph, with hubs behind the blocks of each function."""
        falls = np.flatnonzero(self._goes_on())
        source = np.concatenate([falls, self._of[jumps.row]])
        target = np.concatenate([falls + 1, self._of[jumps.target]])
        is_entry = self._marked(self._of[entered])
        is_reached = is_entry | self._marked(target) | self._marked(self._of[tables.target])
        hubs = self._hubs(~is_reached, tables)
        is_exit = ~self._marked(source) & ~self._marked(hubs.into)
        is_exit[self._of[jumps.leaving]] = True
        is_entry |= ~is_reached & ~self._marked(hubs.out)
        edges = np.concatenate([
            np.column_stack([source, target]),
            np.column_stack([hubs.into, len(self._first) + hubs.of_into]),
            np.column_stack([len(self._first) + hubs.of_out, hubs.out]),
        ])  # fmt: skip
        return self._ordered(hubs.owner, edges, len(falls), is_entry, is_exit)

    def _goes_on(self) -> Bools:
        """(b - 1,): whether each block but the last goes on to the next one."""
        code, last, after = self._code, self._last[:-1], self._first[1:]
        follows = (code.run[last] == code.run[after]) & (np.diff(self._owner) == 0)
        goes_on: Bools = ~code.ends_line[last] & follows
        return goes_on

    def _marked(self, blocks: I64) -> Bools:
        marked = np.zeros(len(self._first), np.bool_)
        marked[blocks] = True
        return marked

    def _hubs(self, is_orphan: Bools, tables: _Tables) -> _Hubs:
        told, of_target = np.unique(self._of[tables.jump], return_inverse=True)
        # The jumps of the procedure linkage table lead to other images' functions.
        is_indirect = self._code.kind[self._last] == Kind.INDIRECT_JUMP
        jumping = np.flatnonzero(is_indirect & ~self._is_stub)
        jumping = np.setdiff1d(jumping, told)
        to = np.flatnonzero(is_orphan | self._marked(self._of[tables.label]))
        shared = np.intersect1d(self._owner[jumping], self._owner[to])
        jumping, to = (rows[np.isin(self._owner[rows], shared)] for rows in (jumping, to))
        number, after = np.arange(len(told)), len(told)
        return _Hubs(
            owner=np.concatenate([self._owner[told], shared]),
            into=np.concatenate([told, jumping]),
            of_into=np.concatenate([number, after + np.searchsorted(shared, self._owner[jumping])]),
            out=np.concatenate([self._of[tables.target], to]),
            of_out=np.concatenate([of_target, after + np.searchsorted(shared, self._owner[to])]),
        )

    def _ordered(
        self, hubs: I64, edges: I64, falls: int, is_entry: Bools, is_exit: Bools
    ) -> CodeGraph:
        """Blocks and hubs by function, edges by source and target."""
        function = np.concatenate([self._owner, hubs])
        order = np.argsort(function, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        source, target = place[edges].T
        # Of a jump to the next block and the fall-through there, the fall-through stays.
        _, rows = np.unique(source * len(order) + target, return_index=True)
        no_block = np.full(len(hubs), -1)
        neither = np.zeros(len(hubs), np.bool_)
        return CodeGraph(
            function=function[order],
            first=np.concatenate([self._first, no_block])[order],
            last=np.concatenate([self._last, no_block])[order],
            is_entry=np.concatenate([is_entry, neither])[order],
            is_exit=np.concatenate([is_exit, neither])[order],
            source=source[rows],
            target=target[rows],
            is_fall=rows < falls,
        )
