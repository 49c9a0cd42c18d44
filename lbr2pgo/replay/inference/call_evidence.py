"""What callers tell of the functions that they call, and these of their callers.

A function runs as often as it is called, and a block that calls as often as its function was
entered from there. Both are estimates of one number from different samples, so each side takes the
other's for more evidence, by how sure it is: blocks that run equally often are known by all their
samples together. Where both contradict each other, the function is called through pointers, or
calls don't return, and nothing is taken.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.program.code.code_graph import CodeGraph
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, GraphFlow, Weights, variances
from lbr2pgo.support.arrays import F64, I64, Bools
from lbr2pgo.support.tables import table

_CONTRADICTS = 3.0
"""Standard deviations between what the callers and what the function itself says."""


@table
class BlockCalls:
    """Direct calls (k,), and jumps to other functions, of the functions of a graph."""

    block: I64
    """Node that calls or jumps."""
    entry: I64
    """Node that is called."""
    is_jump: Bools

    @classmethod
    def of(cls, graph: CodeGraph, code: InstructionTable) -> BlockCalls:
        """Those that the code has."""
        node_of = graph.nodes_of(np.arange(len(code)))
        jumps = np.isin(code.kind, (Kind.COND, Kind.JUMP)) & graph.is_exit[node_of]
        jumps &= np.arange(len(code)) == graph.last[node_of]
        rows = np.flatnonzero(((code.kind == Kind.CALL) | jumps) & code.has_target)
        target = code.index_of(code.target[rows])
        rows, target = rows[target >= 0], target[target >= 0]
        entry = node_of[target]
        known = (graph.first[entry] == target) & graph.is_entry[entry]
        rows, entry = rows[known], entry[known]
        return cls(node_of[rows], entry, jumps[rows])


@table
class CallEvidence:
    """Counts (n,) of nodes and of entries, `UNKNOWN` for some, and how sure they are."""

    node: I64
    node_deviation: F64
    entered: I64
    entered_deviation: F64


def own_evidence(weights: Weights, node: I64) -> CallEvidence:
    """What the samples of each function alone tell, if its nodes (n,) ran so often."""
    deviation = np.sqrt(variances(node, weights.node_spread))
    unknown = np.full(len(node), UNKNOWN)
    return CallEvidence(weights.node, deviation, unknown, np.full(len(node), np.inf))


def shared_evidence(
    calls: BlockCalls, graph: CodeGraph, weights: Weights, flow: GraphFlow
) -> CallEvidence:
    """The same with what callers and called functions tell each other by a first flow."""
    own = own_evidence(weights, flow.node)
    variance = variances(flow.node, _pooled_spread(graph, weights, flow.node))
    leads = np.where(calls.is_jump, flow.left[calls.block], flow.node[calls.block])
    called = np.bincount(calls.entry, leads, len(graph))
    doubt = np.bincount(calls.entry, variance[calls.block], len(graph))
    agrees = np.abs(flow.entered - called) < _CONTRADICTS * np.sqrt(variance + doubt)
    agrees[np.bincount(calls.entry, minlength=len(graph)) == 0] = False
    rows = np.flatnonzero(agrees[calls.entry] & ~calls.is_jump & (weights.node[calls.block] >= 0))
    block, entry = calls.block[rows], calls.entry[rows]
    # What the function was entered beyond its other calls.
    rest = np.maximum(flow.entered[entry] - (called[entry] - leads[rows]), 0)
    node, deviation = _with_more(own, block, rest, variance[entry] + doubt[entry] - variance[block])
    entered = np.where(agrees, np.rint(called), UNKNOWN).astype(np.int64)
    return CallEvidence(node, deviation, entered, np.sqrt(np.where(agrees, doubt, np.inf)))


def _pooled_spread(graph: CodeGraph, weights: Weights, node: I64) -> F64:
    """(n,): what one sample counts for in all blocks of a function with the same flow together."""
    key = graph.function.astype(np.uint64), node.astype(np.uint64)
    group = RowIds().number_rows(*key)
    sure = np.where(weights.node == UNKNOWN, 0.0, 1 / weights.node_spread)
    together = np.bincount(group, sure)[group]
    spread: F64 = np.where(together > 0, 1 / np.maximum(together, 1e-30), weights.node_spread)
    return spread


def _with_more(own: CallEvidence, rows: I64, count: F64, variance: F64) -> tuple[I64, F64]:
    """Counts of nodes and their deviations, with more of some of them: means by precision."""
    precision = own.node_deviation**-2.0
    total = own.node * precision
    np.add.at(total, rows, count / variance)
    np.add.at(precision, rows, 1 / variance)
    node = own.node.copy()
    node[rows] = np.rint(total[rows] / precision[rows]).astype(np.int64)
    return node, precision**-0.5
