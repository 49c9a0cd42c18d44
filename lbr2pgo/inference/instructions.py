"""A flow from samples of instructions: what ran, where no branch was recorded.

A block's count is that of the samples in it, by the number of its instructions; so each sample is
taken to stand for one execution of one instruction, as events that count instructions have it.

Imprecise events name an instruction behind the one that counted, that for which the processor
waited: those behind slow ones far more often than they ran. Which are slow depends on caches and
operands, which samples don't tell; but all instructions of a block run equally often, and blocks as
often as the flow says, so what has many more samples is such a peak. Moving samples back instead,
by the flow, makes it worse for any skid (docs/accuracy.md).
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
_PEAK, _ROUNDS = 1.5, 3
"""Times as many samples as the flow says, from which on there are too many; and how often the flow
is found anew, which peaks have raised. Peaks of twice as many leave more of the bias."""


def counts_of_instructions(
    samples: InstructionCounts,
    program: Program,
    targets: IndirectTargets | None = None,
    *,
    is_imprecise: bool = False,
) -> BranchCounts:
    """The branches and fall-throughs that most likely lie behind samples.

    `targets` are those of indirect jumps, where known. Imprecise samples lose the peaks behind slow
    instructions.
    """
    code = program.instructions_for(samples.address)
    row = code.index_of(samples.address)
    known = row >= 0
    counts = samples.count.astype(np.int64)
    at = np.zeros(len(code), np.int64)
    at[row[known]] = counts[known]
    graph = code_graph(code, program.regions, targets)
    calls = Calls.of(graph, code)
    believed = without_peaks(graph, at, calls) if is_imprecise else at
    flow = infer(graph, instruction_weights(graph, believed), calls)
    lost = int(counts[~known].sum())
    tallies = waterfall.merge(
        samples.tallies,
        {
            "instructions_sampled/no_instruction": lost,
            "instructions_sampled": int(counts.sum()) - lost,
        },
    )
    return counts_of_flow(graph, flow, code, samples.build_id, tallies)


def without_peaks(graph: CodeGraph, samples: I64, calls: Calls) -> I64:
    """Samples (r,) of instructions, none many more than the flow says."""
    node, kept = graph.nodes_of(np.arange(len(samples))), samples
    for _ in range(_ROUNDS):
        flow = infer(graph, instruction_weights(graph, kept), calls)
        most = np.ceil(_PEAK * flow.node[node] / UNIT).astype(np.int64)
        kept = np.minimum(samples, np.maximum(most, 1))
    return kept


def instruction_weights(graph: CodeGraph, samples: I64) -> Weights:
    """What samples (r,) of the instructions tell of the blocks."""
    before = np.concatenate([[0], np.cumsum(samples)])
    size = np.where(graph.is_hub, 1, graph.last - graph.first + 1)
    sampled = before[graph.last + 1] - before[np.maximum(graph.first, 0)]
    node = np.where(graph.is_hub, UNKNOWN, np.rint(sampled * UNIT / size).astype(np.int64))
    edges = len(graph.source)
    return Weights(node, UNIT / size, np.full(edges, UNKNOWN), np.ones(edges))
