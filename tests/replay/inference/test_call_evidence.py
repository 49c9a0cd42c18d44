"""Functions and their callers, which tell of each other."""

from __future__ import annotations

import numpy as np
import pytest
from builders.recordings import PIE

from lbr2pgo.program.code.code_graph import CodeGraph, code_graph
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.call_evidence import BlockCalls
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, GraphFlow, Weights
from lbr2pgo.replay.inference.network import infer

# Function 0: 0 -> 1 or 2 -> 3, of which block 1 calls function 1, the single block 4.
GRAPH = CodeGraph(
    function=np.array([0, 0, 0, 0, 1]),
    first=np.arange(5),
    last=np.arange(5),
    is_entry=np.array([True, False, False, False, True]),
    is_exit=np.array([False, False, False, True, True]),
    source=np.array([0, 0, 1, 2]),
    target=np.array([1, 2, 3, 3]),
    is_fall=np.array([True, False, False, False]),
)
CALLS = BlockCalls(np.array([1]), np.array([4]), np.array([False]))


def inferred(node: list[int], spread: list[float], calls: BlockCalls | None) -> GraphFlow:
    nothing = np.full(4, UNKNOWN)
    return infer(GRAPH, Weights(np.array(node), np.array(spread), nothing, np.ones(4)), calls)


def test_a_function_that_is_surely_known_tells_how_often_its_caller_ran() -> None:
    node, spread = [100, 60, 40, 100, 30], [1.0, 100.0, 100.0, 1.0, 0.1]
    assert inferred(node, spread, None).node.tolist() == [100, 60, 40, 100, 30]
    assert abs(int(inferred(node, spread, CALLS).node[1]) - 30) <= 3


def test_callers_that_are_surely_known_tell_how_often_a_function_ran() -> None:
    node, spread = [100, 60, 40, 100, 30], [1.0, 1.0, 1.0, 1.0, 100.0]
    assert inferred(node, spread, None).entered[4] == 30
    assert abs(int(inferred(node, spread, CALLS).entered[4]) - 60) <= 3


def test_what_contradicts_its_callers_keeps_its_counts() -> None:
    # As a function that is called through pointers, too.
    node, spread = [100, 60, 40, 100, 9000], [1.0, 1.0, 1.0, 1.0, 1.0]
    assert inferred(node, spread, CALLS).node.tolist() == node


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


def test_calls_are_those_of_the_code(program: Program) -> None:
    code = program.instructions_for(program.functions.start)
    graph = code_graph(code, program.regions)
    calls = BlockCalls.of(graph, code)
    starts = code.address[graph.first[calls.entry]]
    for block, start, is_jump in zip(calls.block, starts, calls.is_jump, strict=True):
        rows = np.arange(graph.first[block], graph.last[block] + 1)
        kinds = (Kind.COND, Kind.JUMP) if is_jump else (Kind.CALL,)
        found = rows[np.isin(code.kind[rows], kinds) & (code.target[rows] == start)]
        assert len(found)
    direct = (code.kind == Kind.CALL) & code.has_target
    targets = code.index_of(code.target[direct])
    assert (~calls.is_jump).sum() == (targets >= 0).sum() > 0
