"""Weights on a function's control-flow graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.program.code.cfg import Blocks, EdgeKind, FunctionCFG
from lbr2pgo.program.code.instructions import CALLS
from lbr2pgo.replay.block_counts import count_blocks
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """A graph with how often each block ran, and how often each edge was seen."""

    cfg: FunctionCFG
    block_count: U64
    """(n,): valid fall-throughs over each block, see `BlockCounts`."""
    edge_count: U64
    """(m,): taken branches, or fall-throughs past the end of the source block; behind a call, how
    often it came back."""
    edge_share: F64
    """(m,): of all that left the source block, calls aside; NaN where nothing did."""

    @property
    def sizes(self) -> I64:
        """(n,): bytes of each block."""
        size: I64 = (self.cfg.block_end - self.cfg.block_start).astype(np.int64)
        return size


def flow_graph(evidence: Evidence, region: int) -> FlowGraph:
    """Weigh the graph of a region of the program, fragments included; see `flow_graphs`."""
    (graph,) = flow_graphs(evidence, [region])
    return graph


def flow_graphs(evidence: Evidence, regions: Sequence[int]) -> list[FlowGraph]:
    """Weigh the graphs of regions of the program, of different functions, with their fragments.

    The part of a block's executions that left it by a taken branch is counted over whole runs, as
    in `outcomes`, and divided among the targets as they were seen. A call at the end of a block is
    taken to come back as often as the block behind it ran.
    """
    flow = evidence.flow
    chosen = np.array(regions, np.int64)
    cfgs = evidence.program.cfgs(chosen, evidence.indirect_targets)
    counts = count_blocks(flow, cfgs)
    last = flow.instructions.index_of(cfgs.block_last)
    is_call = last >= 0
    is_call[is_call] = np.isin(flow.instructions.kind[last[is_call]], CALLS)
    comes_back = (cfgs.edge_kind == EdgeKind.FALLTHROUGH) & is_call[cfgs.edge_source]
    ran, jumped = (np.append(each, np.uint64(0))[last] for each in (flow.executed, flow.jumped))
    returns = np.minimum(ran[cfgs.edge_source], counts.block[cfgs.edge_target])
    edge = np.where(comes_back, returns, counts.edge)
    ended = np.where(is_call, np.uint64(0), jumped)
    share = _shares(cfgs, edge, ended)
    weights = cfgs.by_block(counts.block), cfgs.by_edge(edge), cfgs.by_edge(share)
    return [FlowGraph(cfg, *each) for cfg, *each in zip(cfgs.each(), *weights, strict=True)]


def _shares(cfg: Blocks, count: U64, ended: U64) -> F64:
    """Shares of what left each block: fall-throughs whole, taken branches as parts of `ended`.

    What ended in a block whose targets are unknown, in a return say, went along no edge.
    """
    is_fall = cfg.edge_kind == EdgeKind.FALLTHROUGH
    source = cfg.edge_source
    taken, past = np.zeros(len(cfg)), np.zeros(len(cfg))
    np.add.at(taken, source[~is_fall], count[~is_fall].astype(np.float64))
    past[source[is_fall]] = count[is_fall]
    left = past + ended
    with np.errstate(divide="ignore", invalid="ignore"):
        by_run = count / taken[source] * ended[source] / left[source]
        by_fall = count / left[source]
        by_count = count / taken[source]
    share = np.where(is_fall, by_fall, np.where(left[source] > 0, by_run, by_count))
    return np.where(np.isinf(share), np.nan, share)


def _ran_in(evidence: Evidence) -> F64:
    """Executed instructions, or taken branches, of each region of the program, with fragments."""
    flow, regions = evidence.flow, evidence.program.regions
    weight = flow.executed if flow.executed.any() else flow.taken
    rows = np.flatnonzero(weight > 0)
    region = regions.containing(flow.instructions.address[rows])
    inside = region >= 0
    family = regions.parent[region[inside]] if len(regions) else region[inside]
    return np.bincount(family, weight[rows[inside]], len(regions)).astype(np.float64)


def hottest_regions(evidence: Evidence, top: int | None) -> list[tuple[int, float]]:
    """Functions by their share of all executed instructions, hottest first.

    Without fall-throughs (a filtered recording) by their share of taken branches.
    """
    regions, total = evidence.program.regions, evidence.whole.once(_ran_in)
    everything = float(total.sum())
    order = np.argsort(-total, kind="stable")
    if evidence.function is not None:
        order = regions.parent[np.array([evidence.function])]
    order = order[total[order] > 0] if evidence.function is None else order
    return [(int(i), float(total[i]) / max(everything, 1)) for i in order[:top]]
