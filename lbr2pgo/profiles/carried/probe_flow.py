"""Counts of probes that nothing is known of, from those of other probes and the flow of control."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lbr2pgo.program.code.code_graph import code_graph
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64


class ProbeFlow:
    """The code of one function, with its own probes."""

    def __init__(self, program: Program, addresses: PlacedAddresses, probes: I64) -> None:
        """Of these probes (n,), and where they are."""
        code = program.instructions_for(addresses)
        self._graph = code_graph(code, program.regions)
        self._node = self._graph.nodes_of(code.index_of(addresses))
        self._probe = probes
        self._is_alone = np.bincount(probes)[probes] == 1

    def counts(self, known: Mapping[int, int]) -> dict[int, int]:
        """Of all probes; known ones are changed by as little as makes the flow add up."""
        node = np.full(len(self._graph), UNKNOWN)
        told = np.array([known.get(probe, UNKNOWN) for probe in self._probe.tolist()])
        # Of a probe in several places, its count tells how often all of them ran.
        is_told = (told == 0) | ((told > 0) & self._is_alone)
        np.maximum.at(node, self._node[is_told], told[is_told])
        edge = np.full(len(self._graph.source), UNKNOWN)
        flow = infer(self._graph, Weights(node, np.ones(len(node)), edge, np.ones(len(edge))))
        found: dict[int, int] = {}
        for probe, count in zip(self._probe.tolist(), flow.node[self._node].tolist(), strict=True):
            found[probe] = found.get(probe, 0) + count
        return found
