"""Flows as branches and fall-throughs."""

from __future__ import annotations

import numpy as np
import pytest
from builders.recordings import PIE, STATIC
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import BRANCH, FROM, RETURN, TO, BranchCounts
from lbr2pgo.program.code.code_graph import CodeGraph, code_graph
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.flow_traces import counts_of_flow, shared_out
from lbr2pgo.replay.inference.from_instructions import instruction_weights
from lbr2pgo.replay.inference.graph_weights import GraphFlow
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.replay.replay import replay

Case = tuple[Program, InstructionTable, CodeGraph, GraphFlow, BranchCounts]


@pytest.fixture(scope="module", params=[PIE, STATIC], ids=["pie", "static"])
def case(request: pytest.FixtureRequest) -> Case:
    """Random samples of all code, from which any flow may come."""
    program = Program.open(request.param)
    code = program.instructions_for(program.functions.start)
    graph = code_graph(code, program.regions)
    samples = np.random.default_rng(1).geometric(0.3, len(code)) - 1
    flow = infer(graph, instruction_weights(graph, samples))
    return program, code, graph, flow, counts_of_flow(graph, flow, code, None, {})


def test_replayed_every_block_ran_as_often_as_the_flow_says(case: Case) -> None:
    program, code, graph, flow, counts = case
    replayed = replay(counts, program)
    blocks = ~graph.is_hub
    place = replayed.instructions.index_of(code.address[graph.first[blocks]])
    executed = np.append(replayed.executed, np.uint64(0))[place].astype(np.int64)
    assert (executed == flow.node[blocks]).all()


def test_every_fall_through_is_valid_and_none_runs_over_a_call(case: Case) -> None:
    program, _, _, _, counts = case
    tallies = replay(counts, program).tallies
    assert tallies["runs_valid"] == tallies["runs_in_image"] > 0
    assert tallies["runs_suspicious"] == 0


def test_what_goes_on_behind_a_call_is_known_to_have_returned(case: Case) -> None:
    _, code, graph, flow, counts = case
    rows = counts.has(RETURN)
    behind = code.index_of(counts.to[rows])
    assert np.isin(code.kind[behind - 1], CALLS).all()
    ran = np.zeros(len(code), np.int64)
    np.add.at(ran, behind, counts.count[rows].astype(np.int64))
    node = graph.nodes_of(np.arange(len(code)))
    inner = np.flatnonzero(np.isin(code.kind, CALLS))
    inner = inner[inner < graph.last[node[inner]]]
    assert (ran[inner + 1] == flow.node[node[inner]]).all()
    at_ends = graph.is_fall & np.isin(code.kind[graph.last[graph.source]], CALLS)
    assert (ran[graph.first[graph.target[at_ends]]] == flow.edge[at_ends]).all()
    assert flow.edge[at_ends].any()


def test_edges_have_the_counts_of_the_flow(case: Case) -> None:
    program, code, graph, flow, counts = case
    replayed = replay(counts, program)
    ends = code.kind[graph.last] == Kind.COND
    for kind, seen in ((False, replayed.taken), (True, replayed.not_taken)):
        edges = (graph.is_fall == kind) & ends[graph.source] & (graph.source != graph.target)
        edges &= ~graph.is_exit[graph.source]
        place = replayed.instructions.index_of(code.address[graph.last[graph.source[edges]]])
        found = np.append(seen, np.uint64(0))[place].astype(np.int64)
        # A jump to the next instruction is an edge with the fall-through there.
        single = np.bincount(graph.source, minlength=len(graph))[graph.source[edges]] == 2
        assert (found[single] == flow.edge[edges][single]).all()


def test_functions_are_entered_as_often_as_the_flow_says(case: Case) -> None:
    _, code, graph, flow, counts = case
    branches = counts.branches()
    starts = np.flatnonzero(flow.entered)
    for node in starts[:50].tolist():
        rows = (branches.to == code.address[graph.first[node]]) & (branches.known & TO != 0)
        assert branches.count[rows].sum() >= flow.entered[node]


def test_no_branch_says_whether_it_was_predicted(case: Case) -> None:
    counts = case[-1]
    is_branch = counts.has(BRANCH)
    assert (counts.prediction_unknown[is_branch] == counts.count[is_branch]).all()
    assert counts.has(BRANCH | FROM | TO).any()


def test_shares_are_not_negative() -> None:
    """Rounded corners alone would take one from the middle."""
    assert shared_out(np.array([3, 1, 16]), np.array([8, 9, 3])).tolist() == [
        [1, 2, 0], [1, 0, 0], [6, 7, 3],
    ]  # fmt: skip


@given(st.lists(st.integers(0, 90), min_size=1, max_size=6), st.data())
def test_shares_have_the_sums_of_rows_and_columns(rows: list[int], data: st.DataObject) -> None:
    total = sum(rows)
    cuts = data.draw(st.lists(st.integers(0, total), max_size=5))
    columns = np.diff([0, *sorted(cuts), total])
    shared = shared_out(np.array(rows), columns)
    assert (shared >= 0).all()
    assert shared.sum(axis=1).tolist() == rows
    assert shared.sum(axis=0).tolist() == columns.tolist()
    wanted = np.outer(rows, columns) / max(total, 1)
    assert (np.abs(shared - wanted) <= 2).all()
