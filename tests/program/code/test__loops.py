"""Loops of graphs of blocks against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program.code._loops import number_loops

SIZE = 9
BLOCK = st.integers(0, SIZE - 1)


def loops(edges: list[tuple[int, int]], size: int = SIZE) -> list[set[int]]:
    """By their numbers."""
    source, target = np.array(sorted(set(edges)), np.int64).reshape(-1, 2).T.copy()
    found = number_loops(np.searchsorted(source, np.arange(size + 1)), target)
    return [set(np.flatnonzero(found == loop).tolist()) for loop in range(found.max() + 1)]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(BLOCK, BLOCK), max_size=20))
def test_loops_are_the_strongly_connected_pieces_with_a_cycle(edges) -> None:
    graph = nx.DiGraph(sorted(set(edges)))
    wanted = [
        piece for piece in nx.strongly_connected_components(graph)
        if len(piece) > 1 or graph.has_edge(*(2 * tuple(piece)))
    ]  # fmt: skip
    assert loops(edges) == wanted


def test_a_path_may_be_deeper_than_a_stack_of_calls() -> None:
    size = 200_000
    ring = [(i, (i + 1) % size) for i in range(size)]
    assert loops(ring, size) == [set(range(size))]
    assert loops(ring[:-1], size) == []


def test_an_edge_to_no_block_is_refused() -> None:
    with pytest.raises(IndexError):
        number_loops(np.array([0, 1]), np.array([7]))
