"""Counts of a control-flow graph's blocks and edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.program.code.cfg import Blocks, EdgeKind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.tables import seal


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """How often blocks and the edges between them were seen."""

    block: U64
    """(n,): of each block, valid fall-throughs over it; where a call divides it, the most that
    cover one of its instructions."""
    edge: U64
    """(m,): taken branches, or valid fall-throughs that run past the end of the source block."""

    def __post_init__(self) -> None:
        seal(self)


def count_blocks(flow: Flow, cfg: Blocks) -> BlockCounts:
    """Lay a replayed recording over the graphs of one function, or of several."""
    first = flow.instructions.index_of(cfg.block_start)
    last = flow.instructions.index_of(cfg.block_last)
    known = (first >= 0) & (last >= 0)
    block = np.zeros(len(cfg), dtype=np.uint64)
    block[known] = _largest(flow.executed, first[known], last[known])
    passed = np.zeros(len(cfg), dtype=np.uint64)
    passed[known] = flow.executed[last[known]] - flow.ended[last[known]]
    is_fall = cfg.edge_kind == EdgeKind.FALLTHROUGH
    taken = on_edges(flow, cfg, flow.branches.count)
    return BlockCounts(block, np.where(is_fall, passed[cfg.edge_source], taken))


def _largest(values: U64, first: I64, last: I64) -> U64:
    """Largest of `values[first:last + 1]` of each row."""
    if not len(first):
        return values[:0]
    start = int(first.min())
    bounds = np.column_stack([first, last + 1]).ravel() - start
    # Of a large program the function is a small part, and there are many functions. reduceat takes
    # no bound behind the end; every second piece lies between two blocks.
    near = np.append(values[start : int(last.max()) + 1], np.uint64(0))
    largest: U64 = np.maximum.reduceat(near, bounds)[::2]
    return largest


def on_edges(flow: Flow, cfg: Blocks, values: U64) -> U64:
    """(m,): the value (b,) of the branch from each edge's source to its target; 0 without one."""
    branches = flow.branches
    rows = np.flatnonzero(_within(branches.from_, cfg.block_last))
    rows = rows[branches.known[rows] & (FROM | TO) == FROM | TO]
    source, target = cfg.block_last[cfg.edge_source], cfg.block_start[cfg.edge_target]
    edges, none = RowSums(), np.zeros(max(len(rows), len(source)), np.uint64)
    edges.add_rows(source, target, none[: len(source)], none[: len(source)])
    found = edges.find_rows(branches.from_[rows], branches.to[rows], none[: len(rows)])
    total = np.zeros(len(edges), np.uint64)
    total[found[found >= 0]] = values[rows[found >= 0]]
    return total[edges.find_rows(source, target, none[: len(source)])]


def _within(addresses: PlacedAddresses, ends: PlacedAddresses) -> Bools:
    """Which lie between the first and the last of some: quick, where there are many."""
    if not len(ends):
        return np.zeros(len(addresses), np.bool_)
    found: Bools = (addresses >= ends.min()) & (addresses <= ends.max())
    return found
