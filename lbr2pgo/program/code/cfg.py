"""Control-flow graphs of functions with their split-off fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.code._loops import number_loops
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, distinct
from lbr2pgo.support.intervals import interval_of, last_at_or_below
from lbr2pgo.support.tables import Tabular, same_length, seal, table

if TYPE_CHECKING:
    import networkx as nx

T = TypeVar("T", bound=np.generic)


class EdgeKind(IntEnum):
    """How control passes from one block to another."""

    FALLTHROUGH = 0
    TAKEN = 1
    """A conditional branch is taken."""
    JUMP = 2
    INDIRECT = 3


@table
class Transfers(Tabular):
    """Ways out of functions; arrays of k rows, ordered by address in each."""

    block: I64
    address: PlacedAddresses
    """The instruction that leaves."""
    target: PlacedAddresses
    """0 where `has_target` is False."""
    has_target: Bools
    kind: U8
    """`Kind` of the instruction."""

    def of_blocks(self, rows: slice, first: int) -> Transfers:
        """These rows, with blocks numbered from `first` on."""
        return Transfers(
            self.block[rows] - first,
            self.address[rows],
            self.target[rows],
            self.has_target[rows],
            self.kind[rows],
        )


@dataclass(frozen=True)
class Blocks(Tabular):
    """Blocks of code, and edges between them.

    A block is a stretch of instructions that is only entered at its start and only left at its
    end, but for the calls in it.
    """

    block_start: PlacedAddresses
    """(n,)"""
    block_end: PlacedAddresses
    """(n,): first address behind each block"""
    block_last: PlacedAddresses
    """(n,): address of each block's last instruction"""
    entries: I64
    """Blocks where a function, its fragments and symbols inside it start; ordered."""
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

    @cached_property
    def loop_of(self) -> I64:
        """(n,): number of the loop, a strongly connected piece, that each is in; -1: of none."""
        first = np.searchsorted(self.edge_source, np.arange(len(self) + 1))
        return number_loops(first, self.edge_target)


@dataclass(frozen=True)
class FunctionCFG(Blocks):
    """Those of one function with its split-off fragments; blocks are ordered by address."""

    function: int
    """Index of the root: the function that the fragments, if any, were split off from."""

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
        pieces: dict[int, list[int]] = {}
        for block, loop in enumerate(self.loop_of.tolist()):
            pieces.setdefault(loop, []).append(block)
        return [frozenset(blocks) for loop, blocks in sorted(pieces.items()) if loop >= 0]


@dataclass(frozen=True)
class FunctionCFGs(Blocks):
    """Those of several functions, one behind the other."""

    functions: I64
    """(f,): indices of the roots."""
    bounds: I64
    """(f + 1,): the first block of each, and behind the last one."""

    def by_block(self, column: npt.NDArray[T]) -> list[npt.NDArray[T]]:
        """A column (n,) of blocks in the pieces of each function."""
        return [column[piece] for piece in self._pieces()]

    def by_edge(self, column: npt.NDArray[T]) -> list[npt.NDArray[T]]:
        """A column (m,) of edges in the pieces of each function."""
        return [column[piece] for piece in self._pieces(self.edge_source)]

    def _pieces(self, blocks: I64 | None = None) -> list[slice]:
        """Of each function the rows of a column of ordered blocks, by default of all."""
        cuts = self.bounds if blocks is None else np.searchsorted(blocks, self.bounds)
        return [slice(*pair) for pair in pairwise(cuts.tolist())]

    def each(self) -> Iterator[FunctionCFG]:
        """The graph of each function, in their order."""
        numbered = None, self.entries, self.edge_source, self.calls.block, self.exits.block
        pieces = zip(*map(self._pieces, numbered), strict=True)
        for function, (own, entries, edges, calls, exits) in zip(
            self.functions.tolist(), pieces, strict=True
        ):
            yield FunctionCFG(
                self.block_start[own],
                self.block_end[own],
                self.block_last[own],
                self.entries[entries] - own.start,
                self.edge_source[edges] - own.start,
                self.edge_target[edges] - own.start,
                self.edge_kind[edges],
                self.calls.of_blocks(calls, own.start),
                self.exits.of_blocks(exits, own.start),
                function,
            )


def build_cfgs(
    instructions: InstructionTable,
    functions: Functions,
    chosen: I64,
    indirect_targets: Mapping[int, Sequence[int]],
) -> FunctionCFGs:
    """CFGs of functions (f,), each with its fragments, of different families.

    `instructions` holds at least the families'. `indirect_targets` maps an indirect jump's address
    to where it was seen to go: such a target starts a block, and gets an edge, if an instruction
    of the family starts there.
    """
    family, roots = functions.families(chosen), functions.parent[chosen]
    code = instructions.within(functions.ranges.take(family))
    by_root = np.argsort(roots)
    owners = functions.parent[functions.containing(code.address)]
    of = by_root[np.searchsorted(roots[by_root], owners)]
    jumps = _jumps(code, of, indirect_targets)
    entry_rows = _known(code.index_of(functions.entries(family)))
    first = np.flatnonzero(_leaders(code, of, entry_rows, jumps.target_row))
    last = np.append(first[1:], len(code))[: len(first)] - 1
    order = np.argsort(of[first], kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    block = number[last_at_or_below(first, np.arange(len(code)))]
    source, target, kind = _edges(code, of, last, block, jumps)
    return FunctionCFGs(
        block_start=code.address[first[order]],
        block_end=code.end_of(last[order]),
        block_last=code.address[last[order]],
        entries=distinct(block[entry_rows]),
        edge_source=source,
        edge_target=target,
        edge_kind=kind,
        calls=_calls(code, block),
        exits=_exits(code, block, jumps),
        functions=roots,
        bounds=np.searchsorted(of[first[order]], np.arange(len(chosen) + 1)),
    )


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Every branch of the function with every target it is known to have."""

    row: I64
    target: PlacedAddresses
    has_target: Bools
    target_row: I64
    """-1 where no instruction of the function starts at the target."""


def _jumps(
    code: InstructionTable, of: I64, indirect_targets: Mapping[int, Sequence[int]]
) -> _Jumps:
    direct = np.flatnonzero(np.isin(code.kind, (Kind.COND, Kind.JUMP)))
    indirect = np.flatnonzero(code.kind == Kind.INDIRECT_JUMP)
    recorded = [indirect_targets.get(address, ()) for address in code.address[indirect].tolist()]
    counts = [len(targets) for targets in recorded]
    silent = indirect[np.array(counts, dtype=np.int64) == 0]
    seen = np.array(list(chain.from_iterable(recorded)), dtype=np.uint64)
    target = np.concatenate([code.target[direct], seen, np.zeros(len(silent), np.uint64)])
    has_target = np.arange(len(target)) < len(direct) + len(seen)
    row = np.concatenate([direct, np.repeat(indirect, counts), silent])
    target_row = np.where(has_target, code.index_of(target), -1)
    target_row[(target_row >= 0) & (of[target_row] != of[row])] = -1
    return _Jumps(row, target, has_target, target_row)


def _leaders(code: InstructionTable, of: I64, entry_rows: I64, target_rows: I64) -> Bools:
    """Whether each instruction, `of` these functions, starts a block."""
    leader = np.zeros(len(code), dtype=bool)
    leader[:1] = True
    leader[1:] = (code.ends_line | (code.kind == Kind.COND))[:-1] | begins(code.run, of)[1:]
    leader[entry_rows] = True
    leader[_known(target_rows)] = True
    return leader


def _edges(
    code: InstructionTable, of: I64, last: I64, block: I64, jumps: _Jumps
) -> tuple[I64, I64, U8]:
    """Source, target and kind (m,) of each."""
    goes_on = ~code.ends_line[last[:-1]] & ~begins(code.run[last], of[last])[1:]
    falls = block[last[:-1][goes_on]]
    inside = jumps.target_row >= 0
    rows = jumps.row[inside]
    source = np.concatenate([falls, block[rows]])
    target = np.concatenate([falls + 1, block[jumps.target_row[inside]]])
    kind = np.concatenate([np.full(len(falls), EdgeKind.FALLTHROUGH), _EDGE_KIND[code.kind[rows]]])
    order = np.lexsort((kind, target, source))
    order = order[begins(source[order], target[order], kind[order])]
    return source[order], target[order], kind[order].astype(np.uint8)


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
    order = np.lexsort((target, rows, block[rows]))
    rows = rows[order]
    return Transfers(block[rows], code.address[rows], target[order], has_target[order],
                     code.kind[rows])  # fmt: skip


def _known(rows: I64) -> I64:
    return rows[rows >= 0]
