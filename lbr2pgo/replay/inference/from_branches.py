"""A flow from branches: what ran between those that were recorded.

Recorders that keep some kinds of branches, or single ones, tell how often these were taken, and
nothing of the rest. As much flow leaves a block as enters it, so known edges tell of unknown ones.
Of whole stacks all branches and all that fell through are known, and a flow changes them little.
Where stacks have gaps, as BRBE's at prohibited regions, fall-throughs are fewer than branches: each
of these gets the ends that others have from its target, and where there are none, is silent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from lbr2pgo.counting.branch_filters import filter_names, kind_of_stacks
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, Branches, aggregate
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.code.code_graph import CodeGraph, IndirectTargets, code_graph
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.flow_traces import counts_of_flow
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.addresses import PlacedAddresses, placed_array
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.distinct import place_of

_ALL = frozenset(Kind)
_KEPT = {
    "any": _ALL,
    "any_call": set(CALLS),
    "call": {Kind.CALL},
    "ind_call": {Kind.INDIRECT_CALL},
    "any_ret": {Kind.RET},
    "cond": {Kind.COND},
    "ind_jmp": {Kind.INDIRECT_JUMP},
}
"""Which branches a filter keeps (perf: Documentation/perf-record.txt, -j)."""
_LEAVING = frozenset({Kind.JUMP, Kind.INDIRECT_JUMP, Kind.CALL, Kind.INDIRECT_CALL, Kind.RET})
"""Branches that are always taken, and that every recorder of their kind logs."""
_DIRECT = (Kind.COND, Kind.JUMP, Kind.CALL)


@dataclass(frozen=True, slots=True)
class PartialFunctions:
    """Functions of which some counts were lost."""

    start: PlacedAddresses
    idle: PlacedAddresses = field(default_factory=lambda: placed_array([]))
    """Instructions in them that did not run all the same."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What recorders kept."""

    kinds: frozenset[Kind]
    """Branches of these kinds."""
    is_whole: bool
    """All branches, so that what fell through between them is known as well."""
    partial: PartialFunctions | None = None
    """Where 0 says nothing."""


def kept_by(events: Iterable[EventInfo]) -> Kept:
    """What all of these events kept; events that say nothing kept everything.

    >>> sorted(kind.name for kind in kept_by([EventInfo("e", branch_sample_type=1 << 10)]).kinds)
    ['COND']
    """
    kinds, is_whole = _ALL, True
    for event in events:
        if kind_of_stacks(event) == StackKind.SELECTED:
            is_whole = False
            if not event.records_single_branches:
                names = [name for name in filter_names(event) if name in _KEPT]
                kinds &= frozenset().union(*(_KEPT[name] for name in names))
    return Kept(kinds, is_whole)


def counts_with_flow(
    found: Flow, program: Program, kept: Kept, targets: IndirectTargets | None = None
) -> BranchCounts:
    """The branches of a replayed profile, and all else that most likely lies between them.

    Direct branches and fall-throughs are those of the flow; what leads through pointers, returns
    or comes from outside stays as it was recorded.
    """
    code = found.instructions
    graph = code_graph(code, program.regions, targets)
    told = replay(impute(found.counts), program) if kept.is_whole else found
    weights = branch_weights(graph, told, kept)
    if kept.partial is not None:
        idle = code.index_of(kept.partial.idle)
        did_not_run = np.isin(np.arange(len(graph)), graph.nodes_of(idle[idle >= 0]))
        weights = _without_zeros(weights, graph, program.regions, kept.partial.start, did_not_run)
    flow = infer(graph, weights)
    inferred = counts_of_flow(graph, flow, code, found.counts.build_id, found.counts.tallies)
    return _joined(inferred, found, kept)


def branch_weights(graph: CodeGraph, found: Flow, kept: Kept) -> Weights:
    """What branches tell of blocks and edges; one counts for itself."""
    edge = np.full(len(graph.source), UNKNOWN)
    is_hub = graph.is_hub
    from_hub, to_hub = is_hub[graph.source], is_hub[graph.target]
    last = graph.last[graph.source]
    is_kept = _are(found.instructions, last, kept.kinds)
    taken = found.taken.astype(np.int64)
    jumps = np.flatnonzero(~graph.is_fall & ~from_hub & ~to_hub & is_kept)
    edge[jumps] = _counts_of_pairs(found, last[jumps], graph.first[graph.target[jumps]])
    tables = np.flatnonzero(to_hub & is_kept)
    edge[tables] = taken[last[tables]]
    if Kind.INDIRECT_JUMP in kept.kinds:
        cases = np.flatnonzero(from_hub)
        single = np.bincount(graph.target[cases], minlength=len(graph))[graph.target[cases]] == 1
        cases = cases[single]
        edge[cases] = _arrived_by_tables(found)[graph.first[graph.target[cases]]]
    if kept.is_whole:
        past = (found.executed - found.ended).astype(np.int64)
        calls = _are(found.instructions, last, CALLS)
        falls = np.flatnonzero(graph.is_fall & ~calls)
        some = past[last[falls]]
        edge[falls] = np.where((some == 0) & _are_silent(found)[last[falls]], UNKNOWN, some)
    node = _shown(graph, found, kept)
    return Weights(node, np.ones(len(node)), edge, np.ones(len(edge)))


def _without_zeros(
    weights: Weights, graph: CodeGraph, functions: Functions, starts: PlacedAddresses, idle: Bools
) -> Weights:
    """Weights that tell of nothing in some functions where no way on from a block was counted.

    Nodes (n,) that are `idle` did not run.
    """
    counted = np.bincount(graph.source, np.maximum(weights.edge, 0), len(graph)) > 0
    chosen = (
        np.isin(graph.function, functions.parent[functions.containing(starts)]) & ~counted & ~idle
    )
    node = np.where(chosen & (weights.node == 0), UNKNOWN, weights.node)
    edge = np.where(chosen[graph.source] & (weights.edge == 0), UNKNOWN, weights.edge)
    return replace(weights, node=node, edge=edge)


def _are(code: InstructionTable, rows: I64, kinds: Iterable[Kind]) -> Bools:
    found: Bools = np.isin(code.kind[rows], [int(kind) for kind in kinds])
    return found


def _counts_of_pairs(found: Flow, source: I64, target: I64) -> I64:
    """How often each branch (k,) between two instructions was taken."""
    size = len(found.instructions)
    inside = np.flatnonzero((found.branch_from >= 0) & (found.branch_to >= 0))
    key = found.branch_from[inside] * size + found.branch_to[inside]
    order = np.argsort(key, kind="stable")
    place = place_of(source * size + target, key[order])
    count = found.branches.count[inside][order].astype(np.int64)
    return np.where(place >= 0, count[place] if len(count) else 0, 0)


def _arrived_by_tables(found: Flow) -> I64:
    """(r,): how often indirect jumps led to each instruction."""
    inside = np.flatnonzero((found.branch_from >= 0) & (found.branch_to >= 0))
    inside = inside[_are(found.instructions, found.branch_from[inside], {Kind.INDIRECT_JUMP})]
    arrived = np.zeros(len(found.instructions), np.int64)
    np.add.at(arrived, found.branch_to[inside], found.branches.count[inside].astype(np.int64))
    return arrived


def _are_silent(found: Flow) -> Bools:
    """(r,): instructions that may have run behind a branch behind which no run was recorded."""
    code, counts = found.instructions, found.counts
    arrived = code.index_of(counts.to[counts.has(BRANCH | TO) & ~counts.has(END)])
    arrived = arrived[arrived >= 0]
    starts = np.zeros(len(code), np.bool_)
    starts[found.judged.first[found.judged.valid]] = True
    arrived = np.unique(arrived[~starts[arrived]])
    ends = np.ones(len(code), np.bool_)
    ends[:-1] = code.ends_line[:-1] | (code.run[1:] != code.run[:-1])
    ends |= np.isin(code.kind, CALLS)
    place = np.flatnonzero(ends)
    past = place[np.searchsorted(place, arrived)] + 1 if len(arrived) else arrived
    change = np.zeros(len(code) + 1, np.int64)
    np.add.at(change, arrived, 1)
    np.add.at(change, past, -1)
    silent: Bools = np.cumsum(change)[:-1] > 0
    return silent


def _shown(graph: CodeGraph, found: Flow, kept: Kept) -> I64:
    """(n,): how often blocks ran that a recorded branch shows, of several the largest count."""
    node = np.full(len(graph), UNKNOWN)
    kinds = kept.kinds & _LEAVING
    rows = np.flatnonzero(_are(found.instructions, np.arange(len(found.instructions)), kinds))
    np.maximum.at(node, graph.nodes_of(rows), found.taken[rows].astype(np.int64))
    return node


def _joined(inferred: BranchCounts, found: Flow, kept: Kept) -> BranchCounts:
    """Direct branches and fall-throughs that were inferred, and all else that was recorded."""
    code, recorded = found.instructions, found.branches
    direct = _are_direct(code, inferred)
    entries = inferred.has(BRANCH) & ~inferred.has(FROM)
    if Kind.INDIRECT_CALL in kept.kinds:  # what enters functions was recorded
        entries[:] = False
    rows = direct | entries | ~inferred.has(BRANCH)
    others = (found.branch_from < 0) | ~_are(code, found.branch_from, _DIRECT)
    mispredicted, unknown = _predictions(inferred, recorded)
    nothing = np.zeros_like(recorded.from_[others])
    told = inferred.count[rows & inferred.has(BRANCH)]
    branches = int(told.sum() + recorded.count[others].sum())
    return aggregate(
        np.concatenate([inferred.from_[rows], recorded.from_[others]]),
        np.concatenate([inferred.to[rows], recorded.to[others]]),
        np.concatenate([inferred.end[rows], nothing]),
        np.concatenate([inferred.known[rows], recorded.known[others] | np.uint8(BRANCH)]),
        np.concatenate([inferred.count[rows], recorded.count[others]]),
        np.concatenate([mispredicted[rows], recorded.mispredicted[others]]),
        np.concatenate([unknown[rows], recorded.prediction_unknown[others]]),
        build_id=inferred.build_id,
        tallies=waterfall.of_inferred(inferred.tallies, branches),
    )  # fmt: skip


def _are_direct(code: InstructionTable, counts: BranchCounts) -> Bools:
    """(n,): branches that lead where they say."""
    row = np.where(counts.has(BRANCH | FROM), code.index_of(counts.from_), -1)
    return (row >= 0) & _are(code, row, _DIRECT)


def _predictions(inferred: BranchCounts, recorded: Branches) -> tuple[U64, U64]:
    """How many of inferred branches (n,) were mispredicted, and of how many nobody knows."""
    pairs = {
        pair: (wrong, silent)
        for pair, wrong, silent in zip(
            zip(recorded.from_.tolist(), recorded.to.tolist(), strict=True),
            recorded.mispredicted.tolist(), recorded.prediction_unknown.tolist(), strict=True,
        )
    }  # fmt: skip
    rows = zip(inferred.from_.tolist(), inferred.to.tolist(), inferred.count.tolist(),
               inferred.has(BRANCH).tolist(), strict=True)  # fmt: skip
    told = [_told(pairs.get((a, b)), count) if known else (0, 0) for a, b, count, known in rows]
    mispredicted, unknown = np.array(told, np.uint64).reshape(-1, 2).T
    return mispredicted, unknown


def _told(pair: tuple[int, int] | None, count: int) -> tuple[int, int]:
    if pair is None:
        return 0, count
    wrong = min(pair[0], count)
    return wrong, min(pair[1], count - wrong)
