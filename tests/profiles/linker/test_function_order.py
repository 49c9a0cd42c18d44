"""Functions in an order that keeps callers and callees together."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.linker.function_order import FunctionCalls, by_calls


def ordered(sizes: list[int], weights: list[int], *calls: tuple[int, int, int]) -> list[int]:
    rows = np.array(calls, np.int64).reshape(-1, 3)
    table = FunctionCalls(rows[:, 0], rows[:, 1], rows[:, 2].astype(np.uint64))
    size, weight = np.array(sizes, np.uint64), np.array(weights, np.uint64)
    return by_calls(size, weight, table).tolist()


def test_the_densest_stand_first() -> None:
    assert ordered([10, 100, 10], [10, 100, 90]) == [2, 0, 1]


def test_a_function_follows_its_most_frequent_caller() -> None:
    assert ordered([10, 10, 10, 10], [9, 50, 40, 60], (0, 3, 9), (1, 3, 30)) == [1, 3, 2, 0]


def test_recursion_and_rare_callers_move_nothing() -> None:
    calls = ((3, 3, 1000), (0, 3, 1))
    assert ordered([10, 10, 10, 10], [1, 50, 40, 60], *calls) == [3, 1, 2, 0]


def test_a_cluster_grows_to_half_a_large_page() -> None:
    half = 1 << 19
    assert ordered([half, 8, half + 1], [1, 1, 900], (0, 2, 5)) == [1, 2, 0]
    assert ordered([half, 8, half], [1, 1, 900], (0, 2, 5)) == [1, 0, 2]


def test_the_densest_callee_joins_first_where_there_is_room_for_one() -> None:
    sizes, weights = [8, 10, (1 << 20) - 12], [1, 1000, 2000]
    assert ordered(sizes, weights, (0, 1, 5), (0, 2, 5)) == [0, 1, 2]


def test_calls_add_up() -> None:
    calls = FunctionCalls(
        np.array([1, 0, 1]), np.array([2, 2, 2]), np.array([3, 4, 5], np.uint64)
    ).summed()
    assert (calls.caller.tolist(), calls.count.tolist()) == ([0, 1], [4, 8])


def test_no_function_no_order() -> None:
    assert ordered([], []) == []
