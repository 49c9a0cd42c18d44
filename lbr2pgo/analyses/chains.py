"""Chains of blocks that run one after another, wherever they lie in memory.

From the hottest block on, a chain grows to the likeliest next block, if the block at hand is the
likeliest to come before that one too (mutually most likely: W. W. Hwu et al., The Superblock,
1993), at least half of what leaves it goes there, and that is at least half as often as the hottest
block ran: so one count holds for all of a chain. Then it grows backwards in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_graph import FlowGraph, flow_graphs, hottest_regions
from lbr2pgo.evidence.path_counts import PATHS, ChainPlan, PathCounts
from lbr2pgo.evidence.sample_runs import marked_before
from lbr2pgo.program.code.cfg import EdgeKind
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.tables import table

LIKELY = 0.5
"""Least part of a block's executions that must go on to the next block of the chain, and of those
of its hottest block that each of its edges must have."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Blocks in the order in which they run."""

    blocks: tuple[int, ...]
    """Numbers in the graph."""
    edges: tuple[int, ...]
    """Edges between them, one fewer."""


def chains(graph: FlowGraph) -> list[Chain]:
    """Chains of at least two blocks, from the hottest first block on; no block is in two."""
    cfg, count = graph.cfg, graph.edge_count.astype(np.int64)
    edges = ChainEdges(cfg.edge_source, cfg.edge_target, count, graph.edge_share)
    return grown(graph.block_count.astype(np.int64), edges)


@table
class ChainEdges:
    """Ways from block to block, by their numbers; columns of equal length m."""

    source: I64
    target: I64
    count: I64
    share: F64
    """(m,): of all that left the source."""


def grown(count: I64, edges: ChainEdges) -> list[Chain]:
    """Chains of at least two of the blocks that ran so often (n,), from the hottest on."""
    followers = _likeliest(edges)
    ways = [*zip(*(c.tolist() for c in (edges.source, edges.target, edges.count)), strict=True)]
    leaders = {ways[edge][1]: edge for edge in followers.values()}
    free = set(np.flatnonzero(count).tolist())
    found = []
    for seed in np.argsort(-count, kind="stable").tolist():
        if seed in free and (seed in followers or seed in leaders):
            least = LIKELY * int(count[seed])
            chain = _grow(ways, seed, least, followers, leaders, free)
            if len(chain.blocks) > 1:
                found.append(chain)
    return found


def _likeliest(edges: ChainEdges) -> dict[int, int]:
    """Of each block the edge to the block that mutually most likely follows it."""
    is_way = (edges.count > 0) & (edges.source != edges.target)
    usable = np.flatnonzero(is_way & (edges.share >= LIKELY))
    hottest_in = _hottest_by(edges.target, edges.count, np.flatnonzero(is_way))
    hottest_out = _hottest_by(edges.source, edges.count, usable)
    target = edges.target.tolist()
    return {block: edge for block, edge in hottest_out.items() if hottest_in[target[edge]] == edge}


def _hottest_by(key: npt.NDArray[np.int64], count: I64, edges: I64) -> dict[int, int]:
    """The edge of each key with the largest count, the first of equals."""
    order = edges[np.lexsort((-count[edges], key[edges]))]
    first = order[begins(key[order])]
    return dict(zip(key[first].tolist(), first.tolist(), strict=True))


def _grow(
    ways: Sequence[tuple[int, int, int]],
    seed: int,
    least: float,
    followers: dict[int, int],
    leaders: dict[int, int],
    free: set[int],
) -> Chain:
    """Take the chain around a free block, by edges of such a count, out of the free ones.

    Ways have source, target and count.
    """
    free.discard(seed)
    blocks, edges = [seed], []
    while (edge := followers.get(blocks[-1])) is not None:
        _, following, count = ways[edge]
        if following not in free or count < least:
            break
        free.discard(following)
        blocks.append(following)
        edges.append(edge)
    while (edge := leaders.get(blocks[0])) is not None:
        before, _, count = ways[edge]
        if before not in free or count < least:
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


def plan_paths(evidence: Evidence, functions: int | None = None) -> ChainPlan:
    """What to follow samples along: the chains of so many of the hottest functions; None: all."""
    code = evidence.flow.instructions
    size = len(code)
    is_start, is_entry = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    owner, slot = np.zeros(size, np.int64), np.full(size, -1, np.int32)
    slots = 1
    regions = [region for region, _ in hottest_regions(evidence, functions)]
    for number, graph in enumerate(flow_graphs(evidence, regions)):
        rows = code.index_of(graph.cfg.block_start)
        is_start[rows] = True
        owner[rows] = number
        is_entry[rows[_entries(graph)]] = True
        for chain in chains(graph):
            blocks = rows[list(chain.blocks)]
            slot[blocks] = slots + np.arange(len(blocks))
            slots += len(blocks) + 1  # the one between parts it from the next chain
    before = marked_before(is_start)
    return ChainPlan(len(regions), slots, before, owner[is_start], slot, is_entry[is_start])


def _entries(graph: FlowGraph) -> I64:
    """Blocks where a function is entered, and to which none of its own leads."""
    entries = graph.cfg.entries
    return entries[~np.isin(entries, graph.cfg.edge_target)]


def executed_chains(evidence: Evidence, graph: FlowGraph) -> list[Chain]:
    """As `chains`, cut where fewer than LIKELY of the samples that came along one went on.

    Each branch of a chain may be likely and the whole way still rare, where they depend on each
    other.
    """
    found = chains(graph)
    paths = evidence.found(PATHS)
    if paths is None:
        return found
    rows = evidence.flow.instructions.index_of(graph.cfg.block_start)
    return [piece for chain in found for piece in pieces(chain, rows[list(chain.blocks)], paths)]


def pieces(chain: Chain, rows: I64, paths: PathCounts) -> Iterator[Chain]:
    """A chain, of which these are the instructions (n,) that begin its blocks, cut by samples."""
    first = 0
    while first < len(rows) - 1:
        known, went_on = paths.along(rows[first:])
        leaves = np.flatnonzero(went_on < LIKELY * known)
        last = first + int(leaves[0]) if len(leaves) else len(rows) - 1
        if last > first:
            yield Chain(chain.blocks[first : last + 1], chain.edges[first:last])
        first = last + 1


Went = tuple[float | None, float | None, float | None, int | None]


def went(paths: PathCounts | None, rows: I64) -> Went:
    """Which part of the executions of a chain went to its end, its interval, and how many did.

    Rows (n,) of the instruction table begin its blocks; None where nobody looked. The interval is
    that of as many observations as the rarest step has, which is too wide rather than too narrow.
    """
    if paths is None or not len(paths.slot) or paths.slot[rows[0]] < 0:
        return None, None, None, None
    known, went_on = paths.along(rows)
    if not known.all():
        return None, None, None, 0  # no stack reaches so far
    share = np.prod(went_on / known, keepdims=True)
    low, high = wilson(share, known.min(keepdims=True).astype(np.float64))
    return float(share[0]), float(low[0]), float(high[0]), int(went_on[-1])
