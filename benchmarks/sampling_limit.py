"""How near samples of instructions can come to the exact counts at all, whatever is made of them.

``python benchmarks/sampling_limit.py EXACT.npz PROGRAM [--samples=N]``

The exact counts are those that ``lbr2pgo record --exact`` wrote. A block that ran often has about
as many samples as its part of the run says, give or take the root of that; nothing else tells of
its branches, but that as much flow enters every block as leaves it. From this follows the least
variance that an unbiased estimate of an edge can have (Cramer-Rao: the inverse of the information
that all samples of the function hold together), and from that the overlap. The limit is that of an
estimate which knows beforehand what none does: which edges ran at all; the second one knows how
often each function was entered, as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.accuracy_curves import InstructionCurve
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_instructions import instruction_weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.sums import overlap

SAMPLES = 20_000
DRAWS = 3
_MEAN_ERROR = float(np.sqrt(2 / np.pi))
"""Of a normal distribution with a deviation of 1."""
_WITHIN = 10.0
"""Each count is known beforehand to so many times itself, as some are told by no sample."""


class Limit:
    """The least errors of edges, each function for itself."""

    def __init__(self, curve: InstructionCurve, samples: int) -> None:
        graph, part = curve.graph, samples / float(curve.ran.sum())
        self._graph, self._conditional = graph, curve.is_conditional
        ran = np.where(graph.is_hub, 0.0, curve.ran[graph.first] * part)
        ends = curve.code.kind[graph.last[graph.source]]
        goes_on = graph.is_fall & (ends != Kind.COND)
        self._edge = np.where(goes_on, ran[graph.source], curve.edge * part)
        # Where a program ends, or a signal comes, an edge may show what nothing else does.
        flows = (np.bincount(ends, self._edge, len(graph)) for ends in (graph.source, graph.target))
        self._ran = np.where(graph.is_hub, 0.0, np.maximum.reduce([ran, *flows]))

    def overlap(self, *, knows_entries: bool) -> float:
        """Of conditional edges, at best."""
        missing = 0.0
        for edges, nodes in self._functions():
            error = _MEAN_ERROR * self._deviations(edges, nodes, knows_entries=knows_entries)
            ran = self._edge[edges]
            missing += float(np.minimum(error, ran)[self._conditional[edges]].sum())
        return 1 - missing / 2 / float(self._edge[self._conditional].sum())

    def _functions(self) -> Iterator[tuple[I64, I64]]:
        """The edges and nodes of each function that ran; what hubs lead to enters from outside."""
        graph = self._graph
        inner = ~(graph.is_hub[graph.source] | graph.is_hub[graph.target])
        edges, nodes = np.flatnonzero((self._edge > 0) & inner), np.flatnonzero(self._ran > 0)
        owner, owners = graph.function[graph.source[edges]], graph.function[nodes]
        for function in np.unique(owner).tolist():
            yield edges[owner == function], nodes[owners == function]

    def _deviations(self, edges: I64, nodes: I64, *, knows_entries: bool) -> F64:
        """(e,): of the edges of one function."""
        graph, ran, taken = self._graph, self._ran[nodes], self._edge[edges]
        source = np.searchsorted(nodes, graph.source[edges])
        target = np.searchsorted(nodes, graph.target[edges])
        entered = ran - np.bincount(target, taken, len(nodes))
        left = ran - np.bincount(source, taken, len(nodes))
        may_enter = ~(graph.is_entry[nodes] & knows_entries)
        entries = np.flatnonzero((entered > _NONE * ran) & may_enter)
        exits = np.flatnonzero(left > _NONE * ran)
        out = np.zeros((len(nodes), len(edges) + len(entries) + len(exits)))
        into = np.zeros_like(out)
        at_edge, at_entry, at_exit = np.split(
            np.arange(out.shape[1]), [len(edges), len(edges) + len(entries)]
        )
        out[source, at_edge] = into[target, at_edge] = taken
        into[entries, at_entry], out[exits, at_exit] = entered[entries], left[exits]
        size = graph.last[nodes] - graph.first[nodes] + 1
        return _least_deviations(out, into, size / ran)[: len(edges)] * taken


_NONE = 1e-9
"""Part of a count that is none, but what rounding left."""


def _least_deviations(out: F64, into: F64, told: F64) -> F64:
    """(k,): of unbiased estimates of counts, in parts of each.

    (n, k) each: what a change of a count by itself adds to what leaves and enters the nodes, whose
    samples hold so much information (n,) on what leaves; both have to stay equal.
    """
    size = out.shape[1]
    variance = np.linalg.inv(out.T @ (out * told[:, np.newaxis]) + np.eye(size) / _WITHIN**2)
    bound = (out - into) / np.maximum(np.abs(out - into).max(axis=1, keepdims=True), 1e-300)
    seen = bound @ variance
    known = np.einsum("ji,ji->i", seen, np.linalg.pinv(seen @ bound.T, hermitian=True) @ seen)
    found: F64 = np.sqrt(np.maximum(np.diag(variance) - known, 0))
    return found


def inferred(curve: InstructionCurve, samples: int) -> float:
    """The overlap that an inferred flow comes to, mean of some draws."""
    part, rows, found = curve.ran / curve.ran.sum(), curve.is_conditional, []
    for seed in range(1, DRAWS + 1):
        drawn = np.random.default_rng(seed).multinomial(samples, part).astype(np.int64)
        flow = infer(curve.graph, instruction_weights(curve.graph, drawn), curve.calls)
        found.append(overlap(curve.edge[rows], flow.edge[rows]))
    return float(np.mean(found))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exact", type=Path)
    parser.add_argument("program", type=Path)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    args = parser.parse_args()
    program = Program.open(args.program)
    exact = exact_edges_of(args.exact, program)
    curve = InstructionCurve.of(exact, program)
    limit = Limit(curve, args.samples)
    print(f"conditional edges of {args.samples:,} samples of instructions")
    print(f"inferred                    {inferred(curve, args.samples):.4f}")
    print(f"limit                       {limit.overlap(knows_entries=False):.4f}")
    print(f"limit, with known entries   {limit.overlap(knows_entries=True):.4f}")


if __name__ == "__main__":
    main()
