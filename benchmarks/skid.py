"""What skid does to samples of instructions, and what helps against it.

``python benchmarks/skid.py EXACT.npz PROGRAM [--samples=N]``

The exact counts are those that ``lbr2pgo record --exact`` wrote. Samples are drawn from them with a
skid: by some instructions, the same for all, or to what follows an instruction that takes long,
and is sampled by so much more. They are taken as they are; as `convert` takes those of events
without any precision, without peaks and without what waits for instructions of slow classes; and
moved back by one instruction, those of a block's first one to where the flow says that it came
from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.accuracy_curves import InstructionCurve
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.code.decode import are_slow
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_instructions import (
    behind_slow,
    instruction_weights,
    without_peaks,
)
from lbr2pgo.replay.inference.graph_weights import GraphFlow, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.sums import overlap

SAMPLES, DRAWS = 20_000, 2
_SCATTER = np.uint64(2654435761)
"""Which instructions wait for memory, say, is told by a hash of their addresses."""


class Bench:
    """Samples of one program, with what was planted."""

    def __init__(self, exact_path: Path, path: Path) -> None:
        program = Program.open(path)
        exact = exact_edges_of(exact_path, program)
        self.curve = InstructionCurve.of(exact, program)
        code = self.curve.code
        self._slow, self._tells = are_slow(program.image, code), ~behind_slow(program, code)

    def planted(self) -> dict[str, F64]:
        """Names of skids, and where samples fall (r,)."""
        curve, ran = self.curve, self.curve.ran.astype(np.float64)
        mixed = curve.code.address * _SCATTER >> np.uint64(7)
        tenth = np.where(mixed % np.uint64(10) == 0, 10.0, 1.0)
        fourth = np.where((mixed >> np.uint64(2)) % np.uint64(4) == 0, 5.0, 1.0)
        classes = np.where(self._slow, 20.0, 1.0)
        return {
            "no skid": ran,
            "one instruction": curve.later(ran),
            "two instructions": curve.later(curve.later(ran)),
            "behind slow classes, 20 times": curve.later(ran * classes),
            "behind every tenth, 10 times": curve.later(ran * tenth),
            "behind every fourth, 5 times": curve.later(ran * fourth),
        }

    def overlaps(self, samples: I64) -> list[float]:
        """As they are, as `convert` takes imprecise ones, and moved back."""
        graph, calls = self.curve.graph, self.curve.calls
        kept = without_peaks(graph, samples, calls, self._tells)
        plain = infer(graph, instruction_weights(graph, samples), calls)
        weights = [
            instruction_weights(graph, kept, self._tells),
            instruction_weights(graph, self._moved_back(samples, plain)),
        ]
        return [self._judged(plain), *map(self._inferred, weights)]

    def _inferred(self, weights: Weights) -> float:
        return self._judged(infer(self.curve.graph, weights, self.curve.calls))

    def _judged(self, flow: GraphFlow) -> float:
        rows = self.curve.is_conditional
        return overlap(self.curve.edge[rows], flow.edge[rows])

    def _moved_back(self, samples: I64, flow: GraphFlow) -> I64:
        """Samples (r,) of the instructions before."""
        graph = self.curve.graph
        first = graph.first[~graph.is_hub]
        moved = np.append(samples[1:], 0)
        moved[first[first > 0] - 1] = 0
        rows = np.flatnonzero(~(graph.is_hub[graph.source] | graph.is_hub[graph.target]))
        source, target = graph.source[rows], graph.target[rows]
        share = flow.edge[rows] / np.maximum(flow.node[target], 1)
        back = share * samples[graph.first[target]]
        come, gone = (np.bincount(at, back, len(samples))
                      for at in (graph.last[source], graph.first[target]))  # fmt: skip
        stay = np.zeros(len(samples))
        stay[first] = samples[first]
        found: I64 = np.rint(moved + come + stay - gone).astype(np.int64)
        return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exact", type=Path)
    parser.add_argument("program", type=Path)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    args = parser.parse_args()
    bench = Bench(args.exact, args.program)
    print(f"{'':32}{'as sampled':>12}{'as convert':>12}{'moved back':>12}")
    for name, falls in bench.planted().items():
        found = []
        for seed in range(1, DRAWS + 1):
            random = np.random.default_rng(seed)
            drawn = random.multinomial(args.samples, falls / falls.sum()).astype(np.int64)
            found.append(bench.overlaps(drawn))
        print(f"{name:32}" + "".join(f"{part:12.4f}" for part in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()
