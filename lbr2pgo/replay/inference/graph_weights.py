"""What was counted of a graph, and what flows through it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.tables import same_length, seal

UNKNOWN = -1
"""In place of a count that nothing tells."""
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


def variances(count: I64 | F64, spread: F64) -> F64:
    """Of counts, given what one sample counts for.

    >>> variances(np.array([0, 20]), np.array([10.0, 10.0])).tolist()
    [30.0, 230.0]
    """
    variance: F64 = (count + _HALF_SEEN * spread) * spread
    return variance


def deviations(count: I64 | F64, spread: F64) -> F64:
    """The standard deviations of counts."""
    deviation: F64 = np.sqrt(variances(count, spread))
    return deviation
