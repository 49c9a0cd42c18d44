"""Counts laid over the blocks of a block map.

A taken branch from inside a block to the first instruction of another one of the same function is
an edge; to a function's entry it is a call, from wherever it comes. A run falls from block to block
over every border in it. Returns lead into the middle of a block or, where the call may throw and so
ends its block, to the start of the next one, which the block of the call thus goes on to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, RETURN, TO
from lbr2pgo.program.block_map import LANDING_PAD, BlockMap
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.sums import add_at, sums_of_pairs
from lbr2pgo.support.tables import table

JUMPS = (Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP)


@table
class BlockEdges:
    """Edges between blocks of one function, each once; (k,) each, ordered by source and target."""

    source: I64
    target: I64
    count: U64


@dataclass(frozen=True, slots=True)
class BlockFlow:
    """How often blocks ran, and where they led."""

    count: U64
    """(b,): runs over each block of the map, or edges into it where these are more."""
    edges: BlockEdges
    fit: BlockFit


@dataclass(frozen=True, slots=True)
class BlockFit:
    """Jumps within functions that have a map, and how many of them are where it has borders."""

    jumps: int
    at_ends: int
    """That stand at the end of a block, with nothing but jumps behind them there."""
    to_starts: int
    """That lead to the start of one."""


def block_flow(flow: Flow, blocks: BlockMap) -> BlockFlow:
    """Lay counts over the blocks of a map."""
    covered, fell = _runs(flow, blocks)
    jumped, fit = _jumps(flow, blocks)
    returned, rows = _returns(flow, blocks), np.flatnonzero(fell)
    after = np.flatnonzero(returned)
    edges = BlockEdges(
        *sums_of_pairs(
            np.concatenate((jumped.source, after - 1, rows)),
            np.concatenate((jumped.target, after, rows + 1)),
            np.concatenate((jumped.count, returned[after], fell[rows])),
        )
    )
    entered = np.zeros(len(blocks), np.uint64)
    add_at(entered, edges.target, edges.count)
    return BlockFlow(np.maximum(covered, entered), edges, fit)


def containing(addresses: PlacedAddresses, blocks: BlockMap) -> I64:
    """The block that each address lies in, -1 for none."""
    return interval_of(blocks.start, blocks.end, addresses)


def _entered(addresses: PlacedAddresses, blocks: BlockMap) -> I64:
    """As `containing`; at the start of several blocks the first, which has no instructions."""
    row = containing(addresses, blocks)
    first = np.searchsorted(blocks.start, addresses, side="left")
    found = row >= 0
    found[found] = blocks.start[row[found]] == addresses[found]
    return np.where(found, first, row)


def _runs(flow: Flow, blocks: BlockMap) -> tuple[U64, U64]:
    """(b,): runs over each block, and over its border with the next one of its function."""
    judged = flow.judged
    first = _entered(judged.runs.start, blocks)
    last = containing(judged.runs.end, blocks)
    known = judged.valid & (first >= 0) & (last >= first)
    starting, ending = np.zeros((2, len(blocks) + 1), np.int64)
    count = judged.runs.count[known].astype(np.int64)
    np.add.at(starting, first[known], count)
    np.add.at(ending, last[known], count)
    covered = np.cumsum(starting) - np.cumsum(ending) + ending
    past = (covered - ending)[:-1].astype(np.uint64)
    # Between two blocks there may be padding, which runs go over.
    goes_on = blocks.function[:-1] == blocks.function[1:]
    past[:-1][~goes_on] = 0
    past[-1:] = 0
    return covered[:-1].astype(np.uint64), past


def _jumps(flow: Flow, blocks: BlockMap) -> tuple[BlockEdges, BlockFit]:
    """Edges that jumps make, and how well all jumps within functions fit the map."""
    branches = flow.branches
    inside = (flow.branch_from >= 0) & (branches.known & TO != 0)
    inside[inside] = np.isin(flow.instructions.kind[flow.branch_from[inside]], JUMPS)
    rows = np.flatnonzero(inside)
    source, target = containing(branches.from_[rows], blocks), _entered(branches.to[rows], blocks)
    within = (source >= 0) & (target >= 0)
    within[within] = blocks.function[source[within]] == blocks.function[target[within]]
    rows, source, target = rows[within], source[within], target[within]
    # Nothing leads to an entry but calls: where it has no instructions, the block behind it is
    # meant, a loop's head.
    target = target + (blocks.is_entry[target] & (blocks.size[target] == 0))
    leads: Bools = blocks.start[target] == branches.to[rows]
    count = branches.count[rows]
    made = leads & ~blocks.is_entry[target]
    edges = BlockEdges(*sums_of_pairs(source[made], target[made], count[made]))
    at_end = _only_jumps_follow(flow, flow.branch_from[rows], blocks.end[source])
    return edges, BlockFit(*(int(each.sum()) for each in (count, count[at_end], count[leads])))


def _only_jumps_follow(flow: Flow, rows: I64, end: U64) -> Bools:
    """Whether there is nothing else between an instruction and the end of its block; (n,) each."""
    instructions = flow.instructions
    last = np.searchsorted(instructions.address, end, side="left") - 1
    others = np.cumsum(~np.isin(instructions.kind, JUMPS))
    found: Bools = (others[last] == others[rows]) & (instructions.end_of(last) == end)
    return found


def _returns(flow: Flow, blocks: BlockMap) -> U64:
    """(n,): how often control came to each block from the one before, which ends with a call.

    What comes from outside the image is a return, unless the unwinder led to a landing pad. Where
    a flow was inferred, returns are known by the fall-throughs behind them.
    """
    branches, counts = flow.branches, flow.counts
    kind = np.append(flow.instructions.kind, Kind.RET)[flow.branch_from]
    rows = (branches.known & TO != 0) & (kind == Kind.RET)
    bare = counts.has(RETURN) & ~counts.has(BRANCH)
    seen = _landed(branches.to[rows], branches.count[rows], blocks)
    told = _landed(counts.to[bare], counts.count[bare], blocks)
    return np.maximum(seen, told)


def _landed(to: PlacedAddresses, count: U64, blocks: BlockMap) -> U64:
    """(n,): how many returns led to the start of each block, behind a call."""
    target = _entered(to, blocks)
    made = target > 0
    before, after = target[made] - 1, target[made]
    made[made] = (
        (blocks.start[after] == to[made])
        & (blocks.end[before] == blocks.start[after])
        & (blocks.function[before] == blocks.function[after])
        & (blocks.metadata[after] & LANDING_PAD == 0)
    )
    landed = np.zeros(len(blocks), np.uint64)
    add_at(landed, target[made], count[made])
    return landed
