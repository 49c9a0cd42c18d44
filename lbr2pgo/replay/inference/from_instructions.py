"""A flow from samples of instructions: what ran, where no branch was recorded.

A block's count is that of the samples in it, by the number of its instructions; so each sample is
taken to stand for one execution of one instruction, as events that count instructions have it.

Imprecise events name an instruction behind the one that counted. Were that the same way behind
for all, nothing would change: what follows an instruction runs as often as its predecessors
together. But samples fall where the processor waits: on what follows a slow instruction, far more
often than it ran. Where a division or a locked access comes before, any part of the samples may be
such, so those tell nothing of how often the block ran. Loads are slow or not by caches and
operands, which no opcode tells; but all instructions of a block run equally often, and blocks as
often as the flow says, so what has many more samples is such a peak, and cut. Moving samples back
instead, by the flow, makes it worse for any skid (docs/accuracy.md).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.program.code.code_graph import CodeGraph, IndirectTargets, code_graph
from lbr2pgo.program.code.decode import are_slow
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.call_evidence import BlockCalls
from lbr2pgo.replay.inference.flow_traces import counts_of_flow
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.arrays import I64, Bools

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
    is_imprecise: bool,
) -> BranchCounts:
    """The branches and fall-throughs that most likely lie behind samples.

    `targets` are those of indirect jumps, where known. Of imprecise samples, those behind slow
    instructions are left out or cut.
    """
    code = program.instructions_for(samples.address)
    row = code.index_of(samples.address)
    known = row >= 0
    counts = samples.count.astype(np.int64)
    at = np.zeros(len(code), np.int64)
    at[row[known]] = counts[known]
    graph = code_graph(code, program.regions, targets)
    calls = BlockCalls.of(graph, code)
    if is_imprecise:
        tells = ~behind_slow(program, code)
        weights = instruction_weights(graph, without_peaks(graph, at, calls, tells), tells)
    else:
        weights = instruction_weights(graph, at)
    flow = infer(graph, weights, calls)
    lost = int(counts[~known].sum())
    tallies = waterfall.merge(
        samples.tallies,
        {
            "instructions_sampled/no_instruction": lost,
            "instructions_sampled": int(counts.sum()) - lost,
        },
    )
    return counts_of_flow(graph, flow, code, samples.build_id, tallies)


def behind_slow(program: Program, code: InstructionTable) -> Bools:
    """(r,): instructions that wait for one before them, as that takes long whatever it works on.

    Only what runs straight on can: branches are not among the slow ones.
    """
    waits = np.zeros(len(code), np.bool_)
    waits[1:] = are_slow(program.image, code)[:-1] & (code.run[1:] == code.run[:-1])
    return waits


def without_peaks(graph: CodeGraph, samples: I64, calls: BlockCalls, tells: Bools) -> I64:
    """Samples (r,) of instructions, none many more than the flow says."""
    node, kept = graph.nodes_of(np.arange(len(samples))), samples
    for _ in range(_ROUNDS):
        flow = infer(graph, instruction_weights(graph, kept, tells), calls)
        most = np.ceil(_PEAK * flow.node[node] / UNIT).astype(np.int64)
        kept = np.minimum(samples, np.maximum(most, 1))
    return kept


def instruction_weights(graph: CodeGraph, samples: I64, tells: Bools | None = None) -> Weights:
    """What samples (r,) of the instructions tell of the blocks, those that tell anything."""
    told = np.ones(len(samples), np.bool_) if tells is None else tells
    size, sampled = _sums(graph, told.astype(np.int64)), _sums(graph, samples * told)
    spread = UNIT / np.maximum(size, 1)
    node = np.where(size == 0, UNKNOWN, np.rint(sampled * spread).astype(np.int64))
    edges = len(graph.source)
    return Weights(node, spread, np.full(edges, UNKNOWN), np.ones(edges))


def _sums(graph: CodeGraph, values: I64) -> I64:
    """(n,): of the instructions of each node, of which hubs have none."""
    before = np.concatenate([[0], np.cumsum(values)])
    total: I64 = before[graph.last + 1] - before[np.maximum(graph.first, 0)]
    return total
