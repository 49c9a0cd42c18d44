"""A flow over a graph as the branches and fall-throughs that make it up.

They are counted as a recorder of all branches would have: a call ends a fall-through, and the
return behind it starts the next one, which is known to be a return's: where a block ends in the
call, only that says how often control passed to the next one. Which fall-through goes with which
other branch is not known, and neither is where calls through a pointer lead.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, RETURN, TO, BranchCounts, aggregate
from lbr2pgo.program.code.code_graph import CodeGraph
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.replay.inference.graph_weights import GraphFlow
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import F64, I64, U8, U64
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.sums import sums_at

Rows = tuple[PlacedAddresses, PlacedAddresses, PlacedAddresses, U8, U64]
"""Columns as those of `BranchCounts`."""


def counts_of_flow(
    graph: CodeGraph,
    flow: GraphFlow,
    code: InstructionTable,
    build_id: str | None,
    tallies: Mapping[str, int],
) -> BranchCounts:
    """The branches and fall-throughs of a flow."""
    made = _Instructions(graph, flow, code)
    pairs = [
        _edges(graph, flow, code),
        _through_hubs(graph, flow, code),
        made.calls(),
        made.exits(),
    ]
    branches = [_branches(code.address[row], target, count) for row, target, count in pairs]
    rows = (*branches, _entries(graph, flow, code, pairs), made.runs())
    from_, to, end, known, count = (np.concatenate(column) for column in zip(*rows, strict=True))
    return aggregate(
        from_, to, end, known, count, np.zeros_like(count),
        np.where(known & BRANCH != 0, count, np.uint64(0)), build_id=build_id, tallies=tallies,
    )  # fmt: skip


_Pairs = tuple[I64, PlacedAddresses, I64]
"""Rows of branch instructions, where they lead, and how often."""


def _branches(source: PlacedAddresses, target: PlacedAddresses, count: I64) -> Rows:
    known = np.full(len(source), BRANCH | FROM | TO, np.uint8)
    return source, target, placed_addresses(np.zeros(len(source), np.uint64)), known, _u64(count)


def _u64(count: I64) -> U64:
    return count.astype(np.uint64)


def _edges(graph: CodeGraph, flow: GraphFlow, code: InstructionTable) -> _Pairs:
    """Jumps within functions whose targets are known."""
    is_hub = graph.is_hub
    rows = ~graph.is_fall & ~is_hub[graph.source] & ~is_hub[graph.target]
    source, target = graph.source[rows], graph.target[rows]
    return graph.last[source], code.address[graph.first[target]], flow.edge[rows]


def _through_hubs(graph: CodeGraph, flow: GraphFlow, code: InstructionTable) -> _Pairs:
    """Indirect jumps: each has its part of every target, as nothing tells them apart."""
    sources, targets, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    for hub in np.flatnonzero(graph.is_hub & (flow.node > 0)).tolist():
        into, out = graph.target == hub, graph.source == hub
        source, target = graph.source[into], graph.target[out]
        table = shared_out(flow.edge[into], flow.edge[out])
        i, j = np.nonzero(table)
        sources.append(graph.last[source[i]])
        targets.append(graph.first[target[j]])
        counts.append(table[i, j])
    count = np.concatenate([np.zeros(0, np.int64), *counts])
    return np.concatenate(sources), code.address[np.concatenate(targets)], count


def shared_out(rows: I64, columns: I64) -> I64:
    """Whole numbers (n, m) with these sums of rows and columns, as near to proportional as can be.

    Both sum up to the same.

    >>> shared_out(np.array([4, 2]), np.array([3, 3])).tolist()
    [[2, 2], [1, 1]]
    """
    total = max(int(rows.sum()), 1)
    # Rounding running sums of the rows and of the columns keeps all sums as they are.
    ends = np.concatenate([[0], np.cumsum(rows)])[:, np.newaxis].astype(np.float64)
    share = np.concatenate([[0], np.cumsum(columns)])[np.newaxis, :] / total
    corners = np.rint(ends * share).astype(np.int64)
    table: I64 = np.diff(np.diff(corners, axis=0), axis=1)
    if (table < 0).any():
        _lift(table, np.outer(rows, columns / total))
    return table


def _lift(table: I64, wanted: F64) -> None:
    """Make negative numbers 0 at the cost of others in their rows and columns; sums stay.

    Where a number is too low, another one of its row is too high, and so is one of its column.
    """
    for i, j in np.argwhere(table < 0).tolist():
        while table[i, j] < 0:
            k = int(np.argmax(table[i] - wanted[i]))
            other = int(np.argmax(table[:, j] - wanted[:, j]))
            table[[i, other], [j, k]] += 1
            table[[i, other], [k, j]] -= 1


def runs_between(
    start: I64, end: I64, address: PlacedAddresses, returned: I64 | None = None
) -> Rows:
    """Fall-throughs by how many start, and end, at each of the instructions at these addresses.

    Of those that run over a place, the first to start is the first to end; of those that start at
    one place, returns (r,) are the first.
    """
    back = np.zeros_like(start) if returned is None else returned
    starts, ends = np.cumsum(np.column_stack([back, start - back])), np.cumsum(end)
    marks = np.unique(np.concatenate([starts, ends]))
    begin = np.concatenate([[0], marks])[:-1]
    first, is_other = np.divmod(np.searchsorted(starts, begin, side="right"), 2)
    last = np.searchsorted(ends, begin, side="right")
    count = marks - begin
    some = count > 0
    first, last, count, is_return = first[some], last[some], count[some], is_other[some] == 0
    nowhere = placed_addresses(np.zeros(len(first), np.uint64))
    known = (TO | END | np.where(is_return, RETURN, 0)).astype(np.uint8)
    return nowhere, address[first], address[last], known, _u64(count)


class _Instructions:
    """What a flow says of single instructions."""

    def __init__(self, graph: CodeGraph, flow: GraphFlow, code: InstructionTable) -> None:
        self._graph, self._flow, self._code = graph, flow, code
        blocks = np.flatnonzero(~graph.is_hub)
        self._blocks = blocks[np.argsort(graph.first[blocks], kind="stable")]
        first = graph.first[self._blocks]
        self._block = self._blocks[last_at_or_below(first, np.arange(len(code)))]

    def calls(self) -> _Pairs:
        """Calls of known functions."""
        rows = np.flatnonzero(np.isin(self._code.kind, CALLS) & self._code.has_target)
        return rows, self._code.target[rows], self._flow.node[self._block[rows]]

    def exits(self) -> _Pairs:
        """Jumps to other functions."""
        last = self._graph.last[self._blocks]
        jumps = self._code.has_target[last] & np.isin(self._code.kind[last], (Kind.COND, Kind.JUMP))
        left = self._flow.left[self._blocks]
        rows = jumps & (left > 0)
        return last[rows], self._code.target[last[rows]], left[rows]

    def runs(self) -> Rows:
        """Fall-throughs."""
        start, end, returned = self._borders()
        return runs_between(start, end, self._code.address, returned)

    def _borders(self) -> tuple[I64, I64, I64]:
        """(r,) each: how many fall-throughs start, and end, at each instruction, and returns."""
        graph, flow, code, blocks = self._graph, self._flow, self._code, self._blocks
        is_call = np.isin(code.kind, CALLS)
        goes_on = np.flatnonzero(graph.is_fall)
        called = is_call[graph.last[graph.source[goes_on]]]
        into, out = np.zeros(len(graph), np.int64), np.zeros(len(graph), np.int64)
        returned = np.zeros(len(code), np.int64)
        returned[graph.first[graph.target[goes_on[called]]]] = flow.edge[goes_on[called]]
        goes_on = goes_on[~called]
        into[graph.target[goes_on]] = out[graph.source[goes_on]] = flow.edge[goes_on]
        start, end = np.zeros(len(code), np.int64), np.zeros(len(code), np.int64)
        start[graph.first[blocks]] = (flow.node - into)[blocks]
        end[graph.last[blocks]] = (flow.node - out)[blocks]
        inner = np.flatnonzero(is_call)
        inner = inner[inner < graph.last[self._block[inner]]]
        end[inner] = start[inner + 1] = returned[inner + 1] = flow.node[self._block[inner]]
        return start, end, returned


def _entries(
    graph: CodeGraph, flow: GraphFlow, code: InstructionTable, pairs: list[_Pairs]
) -> Rows:
    """Entries of functions that no known branch accounts for."""
    nodes = np.flatnonzero(flow.entered)
    nodes = nodes[np.argsort(graph.first[nodes], kind="stable")]
    address = code.address[graph.first[nodes]]
    seen = np.zeros(len(nodes), np.int64)
    for _, target, count in pairs[2:]:
        seen += sums_at(place_of(target, address), count, len(nodes))
    missing = np.maximum(flow.entered[nodes] - seen, 0)
    none = placed_addresses(np.zeros(len(nodes), np.uint64))
    return none, address, none, np.full(len(nodes), BRANCH | TO, np.uint8), _u64(missing)
