"""A flow from samples of instructions: what ran, where no branch was recorded.

A block's count is that of the samples in it, by the number of its instructions; so each sample is
taken to stand for one execution of one instruction, as events that count instructions have it.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.inference.calls import Calls
from lbr2pgo.inference.network import infer
from lbr2pgo.inference.traces import counts_of_flow
from lbr2pgo.inference.weights import UNKNOWN, Weights
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.program.code.code_graph import CodeGraph, IndirectTargets, code_graph
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import I64

UNIT = 1000
"""What a block of one instruction counts for one sample. Counts are whole numbers, and blocks
have tens of instructions."""


def counts_of_instructions(
    samples: InstructionCounts, program: Program, targets: IndirectTargets | None = None
) -> BranchCounts:
    """The branches and fall-throughs that most likely lie behind samples.

    `targets` are those of indirect jumps, where known.
    """
    code = program.instructions_for(samples.address)
    row = code.index_of(samples.address)
    known = row >= 0
    counts = samples.count.astype(np.int64)
    at = np.zeros(len(code), np.int64)
    at[row[known]] = counts[known]
    graph = code_graph(code, program.regions, targets)
    flow = infer(graph, instruction_weights(graph, at), Calls.of(graph, code))
    lost = int(counts[~known].sum())
    tallies = waterfall.merge(
        samples.tallies,
        {
            "instructions_sampled/no_instruction": lost,
            "instructions_sampled": int(counts.sum()) - lost,
        },
    )
    return counts_of_flow(graph, flow, code, samples.build_id, tallies)


def instruction_weights(graph: CodeGraph, samples: I64) -> Weights:
    """What samples (r,) of the instructions tell of the blocks."""
    before = np.concatenate([[0], np.cumsum(samples)])
    size = np.where(graph.is_hub, 1, graph.last - graph.first + 1)
    sampled = before[graph.last + 1] - before[np.maximum(graph.first, 0)]
    node = np.where(graph.is_hub, UNKNOWN, np.rint(sampled * UNIT / size).astype(np.int64))
    edges = len(graph.source)
    return Weights(node, UNIT / size, np.full(edges, UNKNOWN), np.ones(edges))
