"""Blocks laid out within functions, and functions among each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lbr2pgo.model.branch_counts import TO
from lbr2pgo.profiles.linker.function_order import FunctionCalls, by_calls
from lbr2pgo.profiles.propeller.block_flow import JUMPS, BlockEdges, BlockFlow, containing
from lbr2pgo.program.block_map import BlockMap
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import last_at_or_below, offsets_of
from lbr2pgo.support.sums import add_at, multiplied
from lbr2pgo.support.tables import Tabular, same_length, seal
from lbr2pgo.support.threads import made_of_each

_BLOCKS_AT_ONCE = 1 << 13
"""Of functions with so many, about, a thread lays the blocks out together."""


@dataclass(frozen=True, slots=True)
class Layout(Tabular):
    """Functions that ran, in the order that they are to stand in; (f,) each."""

    function: I64
    """Number in the block map."""
    offsets: I64
    """(f + 1,): where the blocks of each begin."""
    blocks: I64
    """Rows of the map: blocks that ran, the entry first, in the order that they are to stand in."""
    has_cold: Bools
    """Whether other blocks are left, which go elsewhere."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "function", "has_cold")


def lay_out(flow: Flow, blocks: BlockMap, found: BlockFlow) -> Layout:
    """Lay out what ran: hot blocks by ext-TSP, functions by who calls whom."""
    hot = _hot_blocks(blocks, found)
    edges = _among(found.edges, hot, len(blocks))
    begins = np.flatnonzero(np.diff(blocks.function[hot], prepend=-1))
    function = blocks.function[hot[begins]]
    offsets = np.append(begins, len(hot))
    inner = within_functions(offsets, blocks.size[hot], found.count[hot], edges)
    order = _order(flow, blocks, found, hot, function)
    number = np.bincount(blocks.function, minlength=len(blocks.entry))
    lengths = np.diff(offsets)
    rows = np.concatenate(
        [np.arange(offsets[i], offsets[i + 1]) for i in order.tolist()] or [order]
    )
    return Layout(
        function=function[order],
        offsets=offsets_of(lengths[order]),
        blocks=hot[inner[rows]],
        has_cold=number[function[order]] > lengths[order],
    )


def within_functions(offsets: I64, size: U64, count: U64, edges: BlockEdges) -> I64:
    """(b,): blocks in their new order, function by function, some functions in each thread."""
    from lbr2pgo.profiles.propeller._ext_tsp import layout

    edge_offsets = np.searchsorted(edges.source, offsets)

    def laid(functions: tuple[int, int]) -> I64:
        own = slice(functions[0], functions[1] + 1)
        begin, end = offsets[own][[0, -1]].tolist()
        led = slice(*edge_offsets[own][[0, -1]].tolist())
        order: I64 = begin + layout(
            offsets[own] - begin, size[begin:end], count[begin:end], edge_offsets[own] - led.start,
            edges.source[led] - begin, edges.target[led] - begin, edges.count[led],
        )  # fmt: skip
        return order

    cuts = distinct(np.searchsorted(offsets, np.arange(0, offsets[-1], _BLOCKS_AT_ONCE)))
    parts = pairwise([*cuts.tolist(), len(offsets) - 1])
    return np.concatenate([offsets[:0], *made_of_each(laid, parts)])


def _hot_blocks(blocks: BlockMap, found: BlockFlow) -> I64:
    """Rows of blocks that ran, and of the entries of their functions; each function's entry first.

    Ordered by function, and by address behind the entry.
    """
    ran = np.zeros(len(blocks.entry), np.bool_)
    ran[blocks.function[found.count > 0]] = True
    rows = np.flatnonzero((found.count > 0) | (blocks.is_entry & ran[blocks.function]))
    order = np.lexsort((rows, ~blocks.is_entry[rows], blocks.function[rows]))
    hot: I64 = rows[order]
    return hot


def _among(edges: BlockEdges, hot: I64, size: int) -> BlockEdges:
    """Edges between hot blocks, by their places there, ordered by source."""
    place = np.full(size, -1)
    place[hot] = np.arange(len(hot))
    source, target = place[edges.source], place[edges.target]
    rows = np.flatnonzero((source >= 0) & (target >= 0))
    rows = rows[np.argsort(source[rows], kind="stable")]
    return BlockEdges(source[rows], target[rows], edges.count[rows])


def _order(flow: Flow, blocks: BlockMap, found: BlockFlow, hot: I64, function: I64) -> I64:
    """Places in `function`, in the order that they are to stand in."""
    owner = np.searchsorted(function, blocks.function[hot])
    size, weight = np.zeros((2, len(function)), np.uint64)
    add_at(size, owner, blocks.size[hot])
    add_at(weight, owner, multiplied(found.count[hot], blocks.size[hot]))
    number = np.full(len(blocks.entry), -1)
    number[function] = np.arange(len(function))
    calls = _calls(flow, blocks)
    caller, callee = number[calls.caller], number[calls.callee]
    known = (caller >= 0) & (callee >= 0)
    return by_calls(
        size, weight, FunctionCalls(caller[known], callee[known], calls.count[known]).summed()
    )


def _calls(flow: Flow, blocks: BlockMap) -> FunctionCalls:
    """Branches to entries, from blocks of any function; jumps from others, which are tail calls."""
    branches = flow.branches
    rows = np.flatnonzero((flow.branch_from >= 0) & (branches.known & TO != 0))
    source = containing(branches.from_[rows], blocks)
    order = np.argsort(blocks.entry, kind="stable")
    at = last_at_or_below(blocks.entry[order], branches.to[rows])
    made = (source >= 0) & (at >= 0)
    made[made] = blocks.entry[order[at[made]]] == branches.to[rows[made]]
    caller, callee = blocks.function[source[made]], order[at[made]]
    # A loop may begin where its function does.
    is_jump = np.isin(flow.instructions.kind[flow.branch_from[rows[made]]], JUMPS)
    is_call = (caller != callee) | ~is_jump
    return FunctionCalls(caller[is_call], callee[is_call], branches.count[rows[made]][is_call])
