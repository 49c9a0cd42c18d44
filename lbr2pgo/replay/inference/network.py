"""From what was counted of blocks and edges to the nearest flow that adds up.

As in W. He, J. Mestre, S. Pupyrev, L. Wang, H. Yu, "Profile inference revisited", POPL 2022: each
block is an arc from its entry to its end, an outside node closes the flow of each function, and
changing a count has a price. The cheapest set of changes that makes as much flow leave every place
as enters it is a minimum-cost flow. Unlike there, counts are samples, and prices say how surely
each is known: a change by less than its standard deviation is cheap, a change by more is dear. As
a count that came out low by chance looks surer than it is, the deviations are those of the flow
that the round before found. What a function's calls tell is known by a first flow, too (`calls`).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.code.code_graph import CodeGraph
from lbr2pgo.replay.inference._min_cost_flow import merged, nearest_flow
from lbr2pgo.replay.inference.call_evidence import (
    BlockCalls,
    CallEvidence,
    own_evidence,
    shared_evidence,
)
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, GraphFlow, Weights, deviations
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.distinct import begins

_WIDTHS = np.array([0.5, 0.5, 0.5, 0.5, np.inf])
_PRICES = 10.0**8 * np.array([0.25, 0.75, 1.25, 1.75, 2.25])
"""How many deviations each step of the price is wide, and the price there: tangents of the
parabola that the logarithm of a likelihood is near its top. Steps half as wide come no nearer to
the exact counts of SQLite and Lua (overlap of conditional edges), three wider ones lose 0.001."""
_ROUNDS = 2
"""Behind the first one. A third changes the overlap with the exact counts by 0.001 or less, up or
down (20,000 samples of SQLite, Lua and cppcheck), and takes a quarter of the time."""


def infer(graph: CodeGraph, weights: Weights, calls: BlockCalls | None = None) -> GraphFlow:
    """The flow that takes the least change of the weights; of several always the same one.

    Functions are inferred each for itself, unless their calls are given.
    """
    network = _Network(graph, weights.edge)
    node, edge = np.maximum(weights.node, 0), np.maximum(weights.edge, 0)
    flow = network.nearest(own_evidence(weights, node), weights.edge, edge, weights.edge_spread)
    for _ in range(_ROUNDS):
        evidence = (
            own_evidence(weights, flow.node)
            if calls is None
            else shared_evidence(calls, graph, weights, flow)
        )
        flow = network.nearest(evidence, weights.edge, flow.edge, weights.edge_spread)
    return flow


class _Network:
    """The network of a graph: two nodes for each node there, and an outside for each function.

    What is counted goes from one of these to another: nodes, edges, entries, exits. An edge or exit
    that is the only way on from a node flows as the node does, and so does the only way to one:
    its two ends are one.
    """

    def __init__(self, graph: CodeGraph, edge: I64) -> None:
        size = len(graph)
        is_first = begins(graph.function)
        function = np.cumsum(is_first) - 1
        bounds = np.append(np.flatnonzero(is_first), size)
        starts = 2 * bounds + np.arange(len(bounds))
        into = 2 * np.arange(size) + function
        out, outside = into + 1, starts[1:][function] - 1
        entries, exits = np.flatnonzero(graph.is_entry), np.flatnonzero(graph.is_exit)
        tail = np.concatenate([into, out[graph.source], outside[entries], out[exits]])
        head = np.concatenate([out, into[graph.target], into[entries], outside[exits]])
        owner = function[np.concatenate([np.arange(size), graph.source, entries, exits])]
        follows = _followed(graph, edge, entries, exits)
        self._rows, self._follower = np.flatnonzero(follows < 0), np.flatnonzero(follows >= 0)
        self._followed = follows[self._follower]
        # networkx takes 60 times as long for the connected components (benchmarks/own_graphs.py).
        label = merged(int(starts[-1]), tail[self._follower], head[self._follower])
        self._rows = self._rows[np.argsort(owner[self._rows], kind="stable")]
        self._bounds = np.searchsorted(owner[self._rows], np.arange(len(bounds)))
        self._tail, self._head = label[tail[self._rows]], label[head[self._rows]]
        self._nodes = np.append(label[starts[:-1]], label.max(initial=-1) + 1)
        self._size, self._parts = size, np.cumsum([size, len(graph.source), len(entries)])
        self._entries, self._exits = entries, exits

    def nearest(self, evidence: CallEvidence, edge: I64, likely: I64, spread: F64) -> GraphFlow:
        """The flow nearest to counts of nodes, entries, and edges (m,) of a likely size."""
        # A price keeps flow from going round in circles where nothing is known.
        node_deviation = np.where(evidence.node < 0, 1.0, evidence.node_deviation)
        edge_deviation = np.where(edge < 0, 1.0, deviations(likely, spread))
        free = np.full(len(self._exits), np.inf)
        counts = (evidence.node, edge, evidence.entered[self._entries], np.full(len(free), UNKNOWN))
        sure = (node_deviation, edge_deviation, evidence.entered_deviation[self._entries], free)
        flow = np.zeros(self._parts[-1] + len(free), np.int64)
        flow[self._rows] = nearest_flow(
            self._nodes, self._bounds, self._tail, self._head,
            np.concatenate(counts)[self._rows], np.concatenate(sure)[self._rows],
            _WIDTHS, _PRICES,
        )  # fmt: skip
        flow[self._follower] = flow[self._followed]
        node, edges, entered, left = np.split(flow, self._parts)
        return GraphFlow(node, edges, self._at(self._entries, entered), self._at(self._exits, left))

    def _at(self, rows: I64, values: I64) -> I64:
        found = np.zeros(self._size, np.int64)
        found[rows] = values
        return found


def _followed(graph: CodeGraph, edge: I64, entries: I64, exits: I64) -> I64:
    """The node that each node, edge, entry and exit flows as, -1 for those that may differ."""
    ways_out = np.bincount(graph.source, minlength=len(graph)) + graph.is_exit
    ways_in = np.bincount(graph.target, minlength=len(graph)) + graph.is_entry
    edges = np.where(ways_in[graph.target] == 1, graph.target, -1)
    edges = np.where(ways_out[graph.source] == 1, graph.source, edges)
    nothing = np.full(len(graph), -1), np.full(len(entries), -1)
    return np.concatenate([
        nothing[0],
        np.where(edge < 0, edges, -1),
        nothing[1],
        np.where(ways_out[exits] == 1, exits, -1),
    ])  # fmt: skip
