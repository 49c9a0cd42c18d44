"""Counts that others tell by the flow of control: as much leaves a block as enters it."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from lbr2pgo.program.code.code_graph import code_graph
from lbr2pgo.program.code.instructions import CALLS
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools

_UNSURE = 100.0
"""What a sample of a probe counts for that may be another one: its count is changed first."""


class ProbeFlow:
    """The code of one function, with its own probes."""

    def __init__(self, program: Program, addresses: PlacedAddresses, probes: I64) -> None:
        """Of these probes (n,), and where they are."""
        code, regions = program.instructions_once(addresses), program.regions
        graph = self._graph = code_graph(code, regions)
        self._node = graph.nodes_of(code.index_of(addresses))
        self._probe = probes
        self._is_alone = np.bincount(probes)[probes] == 1
        is_block = ~graph.is_hub
        ends_all = is_block & graph.is_exit & np.isin(code.kind[graph.last], CALLS)
        start = code.address[graph.first]
        is_start = regions.start[regions.containing(start)] == start
        is_reached = np.bincount(graph.target, minlength=len(graph)) > 0
        self._is_cold = ends_all | (is_block & ~is_start & ~is_reached)
        """Padding, landing pads, and blocks that end in a call that does not return."""

    def counts(self, known: Mapping[int, int], sure: Set[int]) -> dict[int, int]:
        """Of probes whose counts follow from known ones.

        Those are changed, too, by as little as makes the flow add up, rather than sure ones.
        """
        told = np.array([known.get(probe, UNKNOWN) for probe in self._probe.tolist()])
        # Of a probe in several places, its count tells how often all of them ran.
        is_told = (told == 0) | ((told > 0) & self._is_alone)
        is_sure = np.isin(self._probe, [*sure])
        node, spread = np.where(self._is_cold, 0, UNKNOWN), np.full(len(self._graph), _UNSURE)
        for rows, sample in ((is_told & ~is_sure, _UNSURE), (is_told & is_sure, 1.0)):
            node[self._node[rows]], spread[self._node[rows]] = 0, sample
            np.maximum.at(node, self._node[rows], told[rows])
        edge = np.full(len(self._graph.source), UNKNOWN)
        flow = infer(self._graph, Weights(node, spread, edge, np.ones(len(edge))))
        is_open = ~self._determined(node >= 0)[self._node]
        found: dict[int, int] = {}
        for probe, count in zip(self._probe.tolist(), flow.node[self._node].tolist(), strict=True):
            found[probe] = found.get(probe, 0) + count
        return {probe: found[probe] for probe in found.keys() - set(self._probe[is_open].tolist())}

    def _determined(self, node: Bools) -> Bools:
        """(n,): nodes whose counts follow from those of some."""
        graph = self._graph
        edge = np.zeros(len(graph.source), np.bool_)
        ends = ((graph.source, graph.is_exit), (graph.target, graph.is_entry))
        before, known = -1, int(node.sum())
        while before < known:
            for end, is_open in ends:
                left = np.bincount(end[~edge], minlength=len(graph)) + is_open
                node = node | (left == 0)
                edge = edge | (node & (left == 1) & ~is_open)[end]
            before, known = known, int(node.sum() + edge.sum())
        return node
