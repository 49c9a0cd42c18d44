"""From what was counted of blocks and edges to the nearest flow that adds up.

As in W. He, J. Mestre, S. Pupyrev, L. Wang, H. Yu, "Profile inference revisited", POPL 2022: each
block is an arc from its entry to its end, an outside node closes the flow of each function, and
changing a count has a price. The cheapest set of changes that makes as much flow leave every place
as enters it is a minimum-cost flow. Unlike there, counts are samples, and prices say how surely
each is known: a change by less than its standard deviation is cheap, a change by more is dear. As
a count that came out low by chance looks surer than it is, the deviations are those of the flow
that a first round found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.native.min_cost_flow import solve
from lbr2pgo.program.code.code_graph import CodeGraph
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.tables import same_length, seal

UNKNOWN = -1
"""In place of a count that nothing tells."""
_UNLIMITED = 1 << 62
_PRICE = 10.0**8
"""Of a change by one standard deviation, at the middle step."""
_STEPS = ((0.7, 0.3), (0.7, 1.0), (None, 2.0))
"""How many deviations each step of the price is wide, and the price there: three tangents of the
parabola that the logarithm of a likelihood is near its top. Of one, two, three and five steps of
several widths these came nearest to the exact counts of SQLite (see docs/accuracy.md)."""
_ROUNDS = 2
"""A third one changes the overlap by less than 0.001."""
_HALF_SEEN = 0.3
"""Samples that a place without any may have missed, as a deviation needs to be above 0."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Counts, `UNKNOWN` for some, of the nodes (n,) and the edges (m,) of a graph.

    `spread` is what one sample counts for: a count made of s of them has a variance of s spreads
    squared.
    """

    node: I64
    node_spread: F64
    edge: I64
    edge_spread: F64

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "node", "node_spread")
        same_length(self, "edge", "edge_spread")


@dataclass(frozen=True, slots=True)
class GraphFlow:
    """How often the nodes (n,) and edges (m,) of a graph ran, and were entered from outside."""

    node: I64
    edge: I64
    entered: I64
    left: I64

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "node", "entered", "left")


def infer(graph: CodeGraph, weights: Weights) -> GraphFlow:
    """The flow that takes the least change of the weights; of several always the same one."""
    node, edge = np.maximum(weights.node, 0), np.maximum(weights.edge, 0)
    for _ in range(_ROUNDS):
        network = _Network(graph)
        nodes = network.add_counts(
            network.into, network.out, weights.node, _deviations(node, weights.node_spread)
        )
        edges = network.add_counts(
            network.out[graph.source], network.into[graph.target], weights.edge,
            _deviations(edge, weights.edge_spread),
        )  # fmt: skip
        entries, exits = np.flatnonzero(graph.is_entry), np.flatnonzero(graph.is_exit)
        entered = network.add_free(network.outside[entries], network.into[entries])
        left = network.add_free(network.out[exits], network.outside[exits])
        flow = network.solve()
        node, edge = nodes.total(flow), edges.total(flow)
    size = len(graph)
    return GraphFlow(node, edge, _at(entries, flow[entered], size), _at(exits, flow[left], size))


def _deviations(count: I64, spread: F64) -> F64:
    deviations: F64 = np.sqrt((count + _HALF_SEEN * spread) * spread)
    return deviations


def _at(rows: I64, values: I64, size: int) -> I64:
    found = np.zeros(size, np.int64)
    found[rows] = values
    return found


@dataclass(frozen=True, slots=True)
class _Counted:
    """The arcs by which (k,) counts can be changed."""

    base: I64
    changes: tuple[tuple[I64, slice, int], ...]
    """Rows of the counts, arcs, and whether these add to it or take away."""

    def total(self, flow: I64) -> I64:
        """The changed counts."""
        total = self.base.copy()
        for rows, arcs, sign in self.changes:
            total[rows] += sign * flow[arcs]
        return total


class _Network:
    """The network of a graph: two nodes for each node there, and an outside for each function."""

    def __init__(self, graph: CodeGraph) -> None:
        size = len(graph)
        is_first = np.ones(size, np.bool_)
        is_first[1:] = graph.function[1:] != graph.function[:-1]
        function = np.cumsum(is_first) - 1
        bounds = np.append(np.flatnonzero(is_first), size)
        self._start = 2 * bounds + np.arange(len(bounds))
        self.into = 2 * np.arange(size) + function
        self.out = self.into + 1
        self.outside = self._start[1:][function] - 1 if size else function
        self._supply = np.zeros(int(self._start[-1]), np.int64)
        self._arcs: list[tuple[I64, I64, I64, I64]] = []
        self._size = 0

    def add_free(self, tail: I64, head: I64, price: int = 0) -> slice:
        """Arcs (k,) that any flow may take."""
        return self._add(tail, head, np.full(len(tail), _UNLIMITED), np.full(len(tail), price))

    def add_counts(self, tail: I64, head: I64, count: I64, deviation: F64) -> _Counted:
        """Arcs (k,) that carry these counts, and others along and against them to change these."""
        base = np.maximum(count, 0)
        np.add.at(self._supply, head, base)
        np.subtract.at(self._supply, tail, base)
        rows = np.flatnonzero(count == UNKNOWN)
        # A price keeps flow from going round in circles where nothing is known.
        changes = [(rows, self.add_free(tail[rows], head[rows], 1), 1)]
        more, less = np.flatnonzero(count != UNKNOWN), np.flatnonzero(count > 0)
        left = base[less]
        for width, slope in _STEPS:
            room = _rooms(width, deviation)
            price = np.maximum(np.rint(_PRICE * slope / deviation), 1).astype(np.int64)
            changes.append((more, self._add(tail[more], head[more], room[more], price[more]), 1))
            taken = np.minimum(room[less], left)
            changes.append((less, self._add(head[less], tail[less], taken, price[less]), -1))
            left = left - taken
        return _Counted(base, tuple(changes))

    def _add(self, tail: I64, head: I64, room: I64, price: I64) -> slice:
        self._arcs.append((tail, head, room, price))
        first, self._size = self._size, self._size + len(tail)
        return slice(first, self._size)

    def solve(self) -> I64:
        """The flow of all arcs, in the order in which they were added."""
        columns = [np.concatenate(column) for column in zip(*self._arcs, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        tail, head, room, price = (column[order] for column in columns)
        flow = np.empty(self._size, np.int64)
        bounds = np.searchsorted(tail, self._start)
        flow[order] = solve(self._start, bounds, self._supply, tail, head, room, price)
        return flow


def _rooms(width: float | None, deviation: F64) -> I64:
    if width is None:
        return np.full(len(deviation), _UNLIMITED)
    return np.maximum(np.rint(width * deviation), 1).astype(np.int64)
