from __future__ import annotations

import networkx as nx
import numpy as np
from builders.call_graphs import components
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts._call_order import strong_components

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 12))
    return [sorted(draw(st.sets(st.integers(0, size - 1), max_size=4))) for _ in range(size)]


def found(graph: Graph) -> list[list[int]]:
    offsets = np.cumsum([0, *map(len, graph)])
    targets = np.array([target for row in graph for target in row], np.int64)
    order, component = strong_components(offsets.astype(np.int64), targets)
    parts = np.split(order, np.flatnonzero(np.diff(component)) + 1)
    return [part.tolist() for part in parts if len(part)]


@given(graphs())
def test_components_come_in_llvms_order(graph: Graph) -> None:
    assert found(graph) == components(graph)


@given(graphs())
def test_components_are_those_of_the_graph(graph: Graph) -> None:
    edges = [(source, target) for source, row in enumerate(graph) for target in row]
    whole = nx.DiGraph(edges)
    whole.add_nodes_from(range(len(graph)))
    assert {frozenset(part) for part in found(graph)} == set(
        map(frozenset, nx.strongly_connected_components(whole))
    )


def test_a_graph_without_nodes_has_none() -> None:
    assert found([]) == []


def test_long_ways_take_no_more_stack_than_short_ones() -> None:
    size = 100_000
    assert found([[i + 1] for i in range(size - 1)] + [[]]) == [[i] for i in range(size)][::-1]
