"""How long the inference of a flow takes on one core, for as many functions as a large service has.

``python benchmarks/inference_speed.py EXACT.npz PROGRAM``

Samples are drawn from the exact counts, of all functions of which one ran. These are inferred each
for itself, so the time is in proportion: it is given for 50,000 such functions.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.accuracy_curves import InstructionCurve
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_instructions import instruction_weights
from lbr2pgo.replay.inference.network import infer

FUNCTIONS, SAMPLES, ROUNDS = 50_000, (190_000, 3_800_000), 3


def main() -> None:
    """Measure and print, the quickest of some rounds each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exact", type=Path)
    parser.add_argument("program", type=Path)
    args = parser.parse_args()
    program = Program.open(args.program)
    exact = exact_edges_of(args.exact, program)
    curve = InstructionCurve.of(exact, program)
    part = len(np.unique(curve.graph.function)) / FUNCTIONS
    for samples in SAMPLES:
        chances = curve.ran / curve.ran.sum()
        drawn = np.random.default_rng(1).multinomial(round(samples * part), chances)
        weights, spent = instruction_weights(curve.graph, drawn.astype(np.int64)), []
        for _ in range(ROUNDS):
            before = time.process_time()
            infer(curve.graph, weights, curve.calls)
            spent.append(time.process_time() - before)
        blocks = round(len(curve.graph) / part)
        print(f"{blocks:,} blocks, {samples:,} samples: {min(spent) / part:.2f} s of CPU")


if __name__ == "__main__":
    main()
