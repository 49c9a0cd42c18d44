"""Counts that don't add up, and the nearest flow that does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.code.code_graph import CodeGraph
from lbr2pgo.replay.inference.graph_weights import UNKNOWN, GraphFlow, Weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.support.arrays import I64

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]
LOOP = [(0, 1), (1, 1), (1, 2)]


def graph_of(
    edges: Sequence[tuple[int, int]], size: int, entries: Sequence[int], exits: Sequence[int]
) -> CodeGraph:
    place = np.arange(size)
    source, target = np.array(sorted(edges), np.int64).reshape(-1, 2).T
    return CodeGraph(
        function=np.zeros(size, np.int64),
        first=place,
        last=place,
        is_entry=np.isin(place, entries),
        is_exit=np.isin(place, exits),
        source=source,
        target=target,
        is_fall=np.zeros(len(source), np.bool_),
    )


def weights_of(nodes: Sequence[int], edges: int, known: Sequence[int] | None = None) -> Weights:
    edge = np.full(edges, UNKNOWN) if known is None else np.array(known, np.int64)
    return Weights(np.array(nodes, np.int64), np.ones(len(nodes)), edge, np.ones(edges))


def inferred(
    edges: Sequence[tuple[int, int]], nodes: Sequence[int], known: Sequence[int] | None = None
) -> GraphFlow:
    size = len(nodes)
    graph = graph_of(edges, size, [0], [size - 1])
    return infer(graph, weights_of(nodes, len(edges), known))


def adds_up(graph: CodeGraph, flow: GraphFlow) -> bool:
    into = flow.entered + np.bincount(graph.target, flow.edge, len(graph)).astype(np.int64)
    out = flow.left + np.bincount(graph.source, flow.edge, len(graph)).astype(np.int64)
    columns: tuple[I64, ...] = (flow.node, flow.edge, flow.entered, flow.left)
    return bool((into == flow.node).all() and (out == flow.node).all()) and all(
        (column >= 0).all() for column in columns
    )


@st.composite
def counted_graphs(draw: st.DrawFn) -> tuple[CodeGraph, Weights]:
    size = draw(st.integers(1, 7))
    node = st.integers(0, size - 1)
    edges = sorted(draw(st.sets(st.tuples(node, node), max_size=14)))
    entries, exits = draw(st.sets(node)), draw(st.sets(node))
    counts = st.integers(UNKNOWN, 400)
    nodes = draw(st.lists(counts, min_size=size, max_size=size))
    known = draw(st.lists(counts, min_size=len(edges), max_size=len(edges)))
    return graph_of(edges, size, sorted(entries), sorted(exits)), weights_of(
        nodes, len(edges), known
    )


@given(counted_graphs())
def test_as_much_flow_leaves_every_place_as_enters_it(case: tuple[CodeGraph, Weights]) -> None:
    graph, weights = case
    assert adds_up(graph, infer(graph, weights))


def test_counts_that_add_up_stay_as_they_are() -> None:
    flow = inferred(DIAMOND, [100, 30, 70, 100])
    assert flow.node.tolist() == [100, 30, 70, 100]
    assert flow.edge.tolist() == [30, 70, 30, 70]
    assert (flow.entered[0], flow.left[3]) == (100, 100)


def test_an_unknown_count_is_what_the_others_leave_for_it() -> None:
    assert inferred(DIAMOND, [100, UNKNOWN, 70, 100]).node.tolist() == [100, 30, 70, 100]


def test_a_loop_runs_as_often_as_its_block_was_counted_beyond_the_entries() -> None:
    assert inferred(LOOP, [10, 500, 10]).edge.tolist() == [10, 490, 10]


def test_what_contradicts_the_rest_is_changed_and_the_rest_hardly() -> None:
    flow = inferred(DIAMOND, [1000, 1000, 300, 1000])
    assert 950 < flow.node[0] == flow.node[3] < 1100
    assert 650 < flow.node[1] < 850
    assert 200 < flow.node[2] < 300


def test_known_edges_split_a_flow_that_blocks_leave_open() -> None:
    edges = [(0, 1), (0, 2), (1, 1), (1, 2)]
    flow = inferred(edges, [100, UNKNOWN, 100], [40, UNKNOWN, 7, UNKNOWN])
    assert flow.edge.tolist() == [40, 60, 7, 40]


def test_a_count_made_of_few_samples_gives_way_to_one_made_of_many() -> None:
    graph = graph_of([(0, 1)], 2, [0], [1])
    few_first = Weights(np.array([400, 600]), np.array([100.0, 1.0]), np.array([UNKNOWN]),
                        np.ones(1))  # fmt: skip
    few_last = Weights(np.array([400, 600]), np.array([1.0, 100.0]), np.array([UNKNOWN]),
                       np.ones(1))  # fmt: skip
    assert abs(infer(graph, few_first).node[0] - 600) < 20
    assert abs(infer(graph, few_last).node[0] - 400) < 20


def test_functions_are_inferred_apart() -> None:
    one = graph_of(DIAMOND, 4, [0], [3])
    two = CodeGraph(
        function=np.repeat([0, 7], 4),
        first=np.arange(8),
        last=np.arange(8),
        is_entry=np.tile(one.is_entry, 2),
        is_exit=np.tile(one.is_exit, 2),
        source=np.concatenate([one.source, one.source + 4]),
        target=np.concatenate([one.target, one.target + 4]),
        is_fall=np.tile(one.is_fall, 2),
    )
    counts = [90, 31, 70, 110, 5, 900, 2, 700]
    both = infer(two, weights_of(counts, 8))
    alone = [infer(one, weights_of(part, 4)) for part in (counts[:4], counts[4:])]
    assert both.node.tolist() == [*alone[0].node.tolist(), *alone[1].node.tolist()]
    assert both.edge.tolist() == [*alone[0].edge.tolist(), *alone[1].edge.tolist()]


def test_no_code_has_no_flow() -> None:
    assert len(infer(graph_of([], 0, [], []), weights_of([], 0)).node) == 0
