"""Chains of blocks that run one after another, wherever they lie in memory.

From the hottest block on, a chain grows to the likeliest next block, if the block at hand is the
likeliest to come before that one too (mutually most likely: W. W. Hwu et al., The Superblock,
1993), and at least half of what leaves it goes there. Then it grows backwards in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.flow_graph import FlowGraph, flow_graph, hottest_regions
from lbr2pgo.analyses.table import Column, Kind, Table, empty
from lbr2pgo.program.cfg import EdgeKind
from lbr2pgo.stacks import I64

NAME = "hyperblocks"
TITLE = "Hyperblocks"

LIKELY = 0.5
"""Least part of a block's executions that must go on to the next block of the chain."""

_COLUMNS = (
    Column("function_share", "function's share", Kind.SHARE),
    Column("share", "share in function", Kind.SHARE),
    Column("blocks", "blocks", Kind.COUNT),
    Column("bytes", "bytes", Kind.COUNT),
    Column("executions", "executions", Kind.COUNT),
    Column("likelihood", "whole chain", Kind.SHARE),
    Column("pieces", "pieces", Kind.COUNT),
    Column("saved", "taken branches saved", Kind.COUNT),
    Column("function", "function", Kind.FUNCTION),
    Column("line", "source line", Kind.LOCATION),
    Column("address", "address", Kind.ADDRESS),
    Column("chain", "blocks of the chain", Kind.TEXT),
)
_NOTE = (
    "Executions is how often the chain was entered at its first block; whole chain is how likely "
    "it then runs to its end, if each block decides by itself."
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Blocks in the order in which they run."""

    blocks: tuple[int, ...]
    """Numbers in the graph."""
    edges: tuple[int, ...]
    """Edges between them, one fewer."""


def chains(graph: FlowGraph) -> list[Chain]:
    """Chains of at least two blocks, from the hottest first block on; no block is in two."""
    followers = _likeliest(graph)
    leaders = {int(graph.cfg.edge_target[edge]): edge for edge in followers.values()}
    free = {block for block in range(len(graph.cfg)) if graph.block_count[block]}
    found = []
    for seed in np.argsort(-graph.block_count.astype(np.int64), kind="stable").tolist():
        if seed in free:
            chain = _grow(graph, seed, followers, leaders, free)
            if len(chain.blocks) > 1:
                found.append(chain)
    return found


def _likeliest(graph: FlowGraph) -> dict[int, int]:
    """Of each block the edge to the block that mutually most likely follows it."""
    cfg, count = graph.cfg, graph.edge_count.astype(np.int64)
    is_loop = cfg.edge_source == cfg.edge_target
    usable = np.flatnonzero((count > 0) & ~is_loop & (graph.edge_share >= LIKELY))
    hottest_in = _hottest_by(cfg.edge_target, count, np.flatnonzero((count > 0) & ~is_loop))
    hottest_out = _hottest_by(cfg.edge_source, count, usable)
    return {
        block: edge
        for block, edge in hottest_out.items()
        if hottest_in[int(cfg.edge_target[edge])] == edge
    }


def _hottest_by(key: npt.NDArray[np.int64], count: I64, edges: I64) -> dict[int, int]:
    """The edge of each key with the largest count, the first of equals."""
    order = edges[np.argsort(count[edges], kind="stable")[::-1]]
    first_of: dict[int, int] = {}
    for edge in order.tolist():
        block = int(key[edge])
        best = first_of.setdefault(block, edge)
        if count[best] == count[edge]:
            first_of[block] = min(best, edge)
    return first_of


def _grow(
    graph: FlowGraph,
    seed: int,
    followers: dict[int, int],
    leaders: dict[int, int],
    free: set[int],
) -> Chain:
    """Take the chain around a free block out of the free ones."""
    cfg = graph.cfg
    free.discard(seed)
    blocks, edges = [seed], []
    while (edge := followers.get(blocks[-1])) is not None:
        following = int(cfg.edge_target[edge])
        if following not in free:
            break
        free.discard(following)
        blocks.append(following)
        edges.append(edge)
    while (edge := leaders.get(blocks[0])) is not None:
        before = int(cfg.edge_source[edge])
        if before not in free:
            break
        free.discard(before)
        blocks.insert(0, before)
        edges.insert(0, edge)
    return Chain(tuple(blocks), tuple(edges))


def saved_branches(graph: FlowGraph, chain: Chain) -> int:
    """How many taken branches fewer there were if the chain lay in one piece.

    Branches along the chain would fall through; what falls through to elsewhere now would have to
    branch.
    """
    cfg, count = graph.cfg, graph.edge_count.astype(np.int64)
    saved = 0
    for edge in chain.edges:
        if cfg.edge_kind[edge] in (EdgeKind.TAKEN, EdgeKind.JUMP):
            beside = (cfg.edge_source == cfg.edge_source[edge]) & (
                cfg.edge_kind == EdgeKind.FALLTHROUGH
            )
            saved += int(count[edge]) - int(count[beside].sum())
    return saved


def hyperblocks(evidence: Evidence, top: int | None = TOP) -> Table:
    """The hottest chains of the hottest functions."""
    if not evidence.flow.executed.any():
        return empty(NAME, TITLE, _COLUMNS, *evidence.run_notes())
    rows = [
        row
        for region, share in hottest_regions(evidence, top)
        for row in _rows(evidence, region, share)
    ]
    rows.sort(key=lambda row: (-row[0] * row[1], row[-2]))
    notes = (_NOTE, *evidence.line_notes())
    return Table(NAME, TITLE, _COLUMNS, tuple(rows[:top]), notes, len(rows))


Row = tuple[float, float, int, int, int, float, int, int, str, str | None, int, str]


def _rows(evidence: Evidence, region: int, share: float) -> Iterator[Row]:
    graph = flow_graph(evidence, region)
    cfg = graph.cfg
    weight = graph.block_count * graph.sizes
    total = float(weight.sum())
    for chain in chains(graph):
        blocks, edges = np.array(chain.blocks), np.array(chain.edges)
        starts = cfg.block_start[blocks]
        pieces = 1 + int((cfg.block_end[blocks[:-1]] != starts[1:]).sum())
        yield (
            share,
            float(weight[blocks].sum()) / total,
            len(blocks),
            int(graph.sizes[blocks].sum()),
            int(graph.block_count[blocks[0]]),
            float(np.prod(graph.edge_share[edges])),
            pieces,
            saved_branches(graph, chain),
            evidence.names.region(region),
            evidence.names.lines(starts[:1])[0],
            int(starts[0]),
            " ".join(f"{start:#x}" for start in starts.tolist()),
        )
