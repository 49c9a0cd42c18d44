from __future__ import annotations

from itertools import pairwise

import numpy as np
from builders.call_graphs import components
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts.call_order import top_down

SIZE = 6
functions = st.integers(0, SIZE - 1)
calls = st.lists(st.tuples(functions, functions, st.integers(1, 5)), max_size=12)


def order(rows: list[tuple[int, int, int]], rank: list[int], cold: int = 0) -> list[int]:
    table = np.array(rows, np.int64).reshape(-1, 3)
    found = top_down(
        table[:, 0], table[:, 1], table[:, 2].astype(np.uint64), np.array(rank, np.int64), cold
    )
    return found.tolist()


@given(calls, st.permutations(range(SIZE)))
def test_each_function_stands_once_and_callers_before_callees(
    rows: list[tuple[int, int, int]], rank: list[int]
) -> None:
    found = order(rows, rank)
    assert sorted(found) == list(range(SIZE))
    graph = [[to for from_, to, _ in rows if from_ == node] for node in range(SIZE)]
    circle_of = {node: i for i, part in enumerate(components(graph)) for node in part}
    for from_, to, _ in rows:
        if circle_of[from_] != circle_of[to]:
            assert found.index(from_) < found.index(to)


@given(calls)
def test_a_circle_stands_together(rows: list[tuple[int, int, int]]) -> None:
    found = order(rows, list(range(SIZE)))
    graph = [[to for from_, to, _ in rows if from_ == node] for node in range(SIZE)]
    for part in components(graph):
        places = sorted(found.index(node) for node in part)
        assert all(after == before + 1 for before, after in pairwise(places))


def test_in_a_circle_the_heaviest_call_decides() -> None:
    assert order([(0, 1, 9), (1, 0, 1)], [0, 1]) == [0, 1]
    assert order([(0, 1, 1), (1, 0, 9)], [0, 1]) == [1, 0]


def test_cold_calls_do_not_count() -> None:
    assert order([(1, 0, 3)], [0, 1]) == [1, 0]
    without = order([], [0, 1])
    assert order([(1, 0, 3)], [0, 1], cold=3) == without
    assert order([(1, 0, 2), (1, 0, 2)], [0, 1], cold=3) == [1, 0]  # they add up first
