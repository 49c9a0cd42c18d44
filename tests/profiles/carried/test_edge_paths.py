"""Edges as paths, on graphs small enough to be drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from lbr2pgo.profiles.carried.edge_paths import Edge, EdgeCount, MovedEdges, moved_edges
from lbr2pgo.program.blocks.function_code import BlockCode, CodeCall, FunctionCode


def graph(
    successors: Sequence[Sequence[int]],
    *,
    calling: Sequence[int] = (),
    indirect: Sequence[int] = (),
) -> FunctionCode:
    blocks = tuple(
        BlockCode(
            i, i, (), Counter(), (CodeCall(i, "f"),) if i in calling else (), tuple(to), {},
            i in indirect,
        )
        for i, to in enumerate(successors)
    )  # fmt: skip
    return FunctionCode("f", blocks, ())


def moved(
    edges: Mapping[Edge, tuple[int, int]], old: FunctionCode, new: FunctionCode,
    to: Mapping[int, int], idle: Sequence[int] = (),
) -> MovedEdges:  # fmt: skip
    passed = {edge: EdgeCount(*counts, {edge}) for edge, counts in edges.items()}
    return moved_edges(passed, old, new, to, frozenset(idle))


def told(found: MovedEdges) -> dict[Edge, tuple[int, int]]:
    return {edge: (each.count, each.mispredicted) for edge, each in found.edges.items()}


LINE = graph([[1], [2], []])
SAME = {0: 0, 1: 1, 2: 2}


def test_an_edge_that_is_still_there_keeps_its_counts() -> None:
    found = moved({(0, 1): (5, 2), (1, 2): (4, 0)}, LINE, LINE, SAME)
    assert told(found) == {(0, 1): (5, 2), (1, 2): (4, 0)}
    assert not found.lost


def test_a_new_block_is_passed_through() -> None:
    new = graph([[3], [2], [], [1]])
    found = moved({(0, 1): (5, 2)}, LINE, new, SAME)
    assert told(found) == {(0, 3): (5, 2), (3, 1): (5, 0)}


def test_the_shorter_way_is_taken_and_one_without_a_call() -> None:
    new = graph([[3, 4], [2], [], [5], [1], [1]])
    assert told(moved({(0, 1): (5, 0)}, LINE, new, SAME)) == {(0, 4): (5, 0), (4, 1): (5, 0)}
    new = graph([[3, 4], [2], [], [5], [1], [1]], calling=[4])
    assert (3, 5) in told(moved({(0, 1): (5, 0)}, LINE, new, SAME))


def test_no_way_leads_through_an_idle_block() -> None:
    new = graph([[3], [2], [], [1]])
    found = moved({(0, 1): (5, 2)}, LINE, new, SAME, idle=[3])
    assert told(found) == {}
    assert found.lost == {(0, 1)}


def test_what_is_too_far_away_is_lost() -> None:
    far = graph([[3], [2], [], *([i] for i in range(4, 20)), [1]])
    assert moved({(0, 1): (5, 2)}, LINE, far, SAME).lost == {(0, 1)}


def test_a_block_that_is_gone_is_left_out() -> None:
    old = graph([[2], [2], [3, 4], [], []])
    new = graph([[3, 4], [3, 4], [], [], []])
    edges = {(0, 2): (30, 3), (1, 2): (10, 0), (2, 3): (20, 1), (2, 4): (20, 1)}
    found = moved(edges, old, new, {0: 0, 1: 1, 3: 3, 4: 4})
    assert told(found) == {(0, 3): (15, 1), (0, 4): (15, 1), (1, 3): (5, 0), (1, 4): (5, 0)}
    assert not found.lost


def test_a_loop_over_one_that_is_gone_is_no_end() -> None:
    old, new = graph([[1], [1, 2], []]), graph([[2], [], []])
    found = moved({(0, 1): (5, 0), (1, 1): (95, 0), (1, 2): (5, 0)}, old, new, {0: 0, 2: 2})
    assert told(found) == {(0, 2): (5, 0)}


@pytest.mark.parametrize("edges", [{(0, 1): (5, 0)}, {(1, 2): (5, 0)}])
def test_what_leads_to_or_from_nowhere_is_lost(edges: Mapping[Edge, tuple[int, int]]) -> None:
    found = moved(edges, LINE, graph([[2], [], []]), {0: 0, 2: 2})
    assert told(found) == {}
    assert found.lost == set(edges)


def test_a_jump_through_a_pointer_may_lead_anywhere() -> None:
    old, new = graph([[1], [], []], indirect=[0]), graph([[], [], []], indirect=[0])
    assert told(moved({(0, 1): (5, 1)}, old, new, SAME)) == {(0, 1): (5, 1)}
    assert moved({(0, 1): (5, 1)}, old, graph([[], [], []]), SAME).lost == {(0, 1)}
    through_table = graph([[2], [], []], indirect=[0])
    assert moved({(0, 1): (5, 1)}, old, through_table, SAME).lost == {(0, 1)}


def test_a_block_may_lead_to_itself() -> None:
    old, new = graph([[0, 1], []]), graph([[2, 1], [], [0]])
    found = moved({(0, 0): (9, 1), (0, 1): (1, 0)}, old, new, {0: 0, 1: 1})
    assert told(found) == {(0, 2): (9, 1), (2, 0): (9, 0), (0, 1): (1, 0)}
