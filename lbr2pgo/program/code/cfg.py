"""Control-flow graph of one function with its split-off fragments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import interval_of, last_at_or_below
from lbr2pgo.support.tables import same_length, seal, table

if TYPE_CHECKING:
    import networkx as nx


class EdgeKind(IntEnum):
    """How control passes from one block to another."""

    FALLTHROUGH = 0
    TAKEN = 1
    """A conditional branch is taken."""
    JUMP = 2
    INDIRECT = 3


@table
class Transfers:
    """Ways out of a function; arrays of k rows, ordered by address."""

    block: I64
    address: PlacedAddresses
    """The instruction that leaves."""
    target: PlacedAddresses
    """0 where `has_target` is False."""
    has_target: Bools
    kind: U8
    """`Kind` of the instruction."""

    def __len__(self) -> int:
        return len(self.block)


@dataclass(frozen=True)
class FunctionCFG:
    """Blocks and edges.

    A block is a stretch of instructions that is only entered at its start and only left at its
    end, but for the calls in it.
    """

    function: int
    """Index of the root: the function that the fragments, if any, were split off from."""
    block_start: PlacedAddresses
    """(n,), ordered"""
    block_end: PlacedAddresses
    """(n,): first address behind each block"""
    block_last: PlacedAddresses
    """(n,): address of each block's last instruction"""
    entries: I64
    """Blocks where the function, its fragments and symbols inside it start."""
    edge_source: I64
    """(m,): block numbers; edges are ordered by source, target and kind, each there once"""
    edge_target: I64
    edge_kind: U8
    """`EdgeKind`"""
    calls: Transfers
    """Calls, which do not end a block."""
    exits: Transfers
    """Branches out: tail calls, conditional ones too, and indirect jumps to elsewhere. Indirect
    jumps without a recorded target are listed with no target."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "block_start", "block_end", "block_last")
        same_length(self, "edge_source", "edge_target", "edge_kind")

    def __len__(self) -> int:
        return len(self.block_start)

    def block_of(self, addresses: PlacedAddresses) -> I64:
        """Number of the block that holds each address, -1 where none does."""
        return interval_of(self.block_start, self.block_end, addresses)

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Block numbers as nodes with `start` and `end`; edges with `kinds`, a tuple."""
        import networkx as nx

        graph = nx.DiGraph()
        bounds = zip(self.block_start.tolist(), self.block_end.tolist(), strict=True)
        graph.add_nodes_from((i, {"start": a, "end": b}) for i, (a, b) in enumerate(bounds))
        kinds: dict[tuple[int, int], tuple[EdgeKind, ...]] = {}
        columns = (self.edge_source.tolist(), self.edge_target.tolist(), self.edge_kind.tolist())
        for source, target, kind in zip(*columns, strict=True):
            kinds[source, target] = (*kinds.get((source, target), ()), EdgeKind(kind))
        graph.add_edges_from((a, b, {"kinds": k}) for (a, b), k in kinds.items())
        return graph

    @cached_property
    def loops(self) -> list[frozenset[int]]:
        """Blocks of each strongly connected piece that has a cycle."""
        import networkx as nx

        # Without what `graph` says of blocks and edges, which takes most of the time.
        edges = nx.DiGraph(zip(self.edge_source.tolist(), self.edge_target.tolist(), strict=True))
        return [
            frozenset(blocks)
            for blocks in nx.strongly_connected_components(edges)
            if len(blocks) > 1 or edges.has_edge(*(2 * tuple(blocks)))
        ]


def build_cfg(
    instructions: InstructionTable,
    functions: Functions,
    function: int,
    indirect_targets: Mapping[int, Sequence[int]],
) -> FunctionCFG:
    """CFG of a function, or of the whole family if it was split.

    `instructions` holds at least the family's. `indirect_targets` maps an indirect jump's address
    to where it was seen to go: such a target starts a block, and gets an edge, if an instruction
    of the family starts there.
    """
    family = functions.families(np.array([function]))
    code = instructions.within(functions.ranges.take(family))
    jumps = _jumps(code, indirect_targets)
    entry_rows = _known(code.index_of(functions.entries(family)))
    first = np.flatnonzero(_leaders(code, entry_rows, jumps.target_row))
    block = last_at_or_below(first, np.arange(len(code)))
    last = np.append(first[1:], len(code))[: len(first)] - 1
    edges = _edges(code, last, block, jumps)
    return FunctionCFG(
        function=int(functions.parent[function]),
        block_start=code.address[first],
        block_end=code.end[last],
        block_last=code.address[last],
        entries=distinct(block[entry_rows]),
        edge_source=edges[:, 0],
        edge_target=edges[:, 1],
        edge_kind=edges[:, 2].astype(np.uint8),
        calls=_calls(code, block),
        exits=_exits(code, block, jumps),
    )


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Every branch of the function with every target it is known to have."""

    row: I64
    target: PlacedAddresses
    has_target: Bools
    target_row: I64
    """-1 where no instruction of the function starts at the target."""


def _jumps(code: InstructionTable, indirect_targets: Mapping[int, Sequence[int]]) -> _Jumps:
    direct = np.flatnonzero(np.isin(code.kind, (Kind.COND, Kind.JUMP)))
    indirect = np.flatnonzero(code.kind == Kind.INDIRECT_JUMP)
    recorded = [indirect_targets.get(address, ()) for address in code.address[indirect].tolist()]
    counts = [len(targets) for targets in recorded]
    silent = indirect[np.array(counts, dtype=np.int64) == 0]
    seen = np.array(list(chain.from_iterable(recorded)), dtype=np.uint64)
    target = np.concatenate([code.target[direct], seen, np.zeros(len(silent), np.uint64)])
    has_target = np.arange(len(target)) < len(direct) + len(seen)
    return _Jumps(
        row=np.concatenate([direct, np.repeat(indirect, counts), silent]),
        target=target,
        has_target=has_target,
        target_row=np.where(has_target, code.index_of(target), -1),
    )


def _leaders(code: InstructionTable, entry_rows: I64, target_rows: I64) -> Bools:
    """Whether each instruction starts a block."""
    leader = np.zeros(len(code), dtype=bool)
    leader[:1] = True
    leader[1:] = (code.ends_line | (code.kind == Kind.COND))[:-1] | (np.diff(code.run) != 0)
    leader[entry_rows] = True
    leader[_known(target_rows)] = True
    return leader


def _edges(code: InstructionTable, last: I64, block: I64, jumps: _Jumps) -> I64:
    """(m, 3): source, target, kind."""
    goes_on = ~code.ends_line[last[:-1]] & (np.diff(code.run[last]) == 0)
    falls = np.flatnonzero(goes_on)
    inside = jumps.target_row >= 0
    edges = np.concatenate(
        [
            np.column_stack([falls, falls + 1, np.full(len(falls), EdgeKind.FALLTHROUGH)]),
            np.column_stack(
                [
                    block[jumps.row[inside]],
                    block[jumps.target_row[inside]],
                    _EDGE_KIND[code.kind[jumps.row[inside]]],
                ]
            ),
        ]
    )
    return np.unique(edges, axis=0)


_EDGE_KIND = np.zeros(len(Kind), np.int64)
_EDGE_KIND[[Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP]] = (
    EdgeKind.TAKEN, EdgeKind.JUMP, EdgeKind.INDIRECT,
)  # fmt: skip


def _calls(code: InstructionTable, block: I64) -> Transfers:
    rows = np.flatnonzero(np.isin(code.kind, CALLS))
    return _transfers(code, block, rows, code.target[rows], code.has_target[rows])


def _exits(code: InstructionTable, block: I64, jumps: _Jumps) -> Transfers:
    outside = jumps.target_row < 0
    return _transfers(
        code, block, jumps.row[outside], jumps.target[outside], jumps.has_target[outside]
    )


def _transfers(
    code: InstructionTable, block: I64, rows: I64, target: PlacedAddresses, has_target: Bools
) -> Transfers:
    order = np.lexsort((target, rows))
    rows = rows[order]
    return Transfers(block[rows], code.address[rows], target[order], has_target[order],
                     code.kind[rows])  # fmt: skip


def _known(rows: I64) -> I64:
    return rows[rows >= 0]
