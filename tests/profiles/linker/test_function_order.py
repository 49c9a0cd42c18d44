"""Functions in an order that keeps callers and callees together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from builders.elf import Function
from builders.flows import Trace, flow_of

from lbr2pgo.profiles.linker.call_graph_order import lines_of
from lbr2pgo.profiles.linker.function_order import (
    FunctionCalls,
    FunctionFlow,
    by_calls,
    by_first_runs,
    function_flow,
)
from lbr2pgo.profiles.linker.symbol_order import NamedFlow


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


BASE = 0x2000
CODE = bytes.fromhex(
    "90"  # 0 nop          f, a loop
    "75fd"  # 1 jne 0
    "c3"  # 3 ret
    "e8f7ffffff"  # 4 call 0       g
    "ebf5"  # 9 jmp 0        a tail call
    "c3"  # 11 ret           g.cold
)
SYMBOLS = [Function("f", BASE, 4), Function("g", BASE + 4, 7), Function("g.cold", BASE + 11, 1)]


def counted(where: Path, *traces: Trace) -> FunctionFlow:
    flow, program = flow_of(where, CODE, BASE, traces, SYMBOLS)
    return function_flow(flow, program.functions)


def test_bytes_that_ran_weigh_as_often_as_they_did(tmp_path: Path) -> None:
    found = counted(tmp_path, (None, 0, 1, 5), (None, 4, 4, 2))
    assert found.function.tolist() == [0, 1]
    assert found.size.tolist() == [3, 5]
    assert found.weight.tolist() == [15, 10]


def test_calls_and_tail_calls_count_and_loops_do_not(tmp_path: Path) -> None:
    found = counted(tmp_path, (4, 0, 1, 3), (1, 0, 1, 50), (3, 9, 9, 2), (9, 0, 3, 2))
    calls = found.calls
    assert (calls.caller.tolist(), calls.callee.tolist(), calls.count.tolist()) == ([1], [0], [5])


def test_what_was_split_off_is_part_of_its_function(tmp_path: Path) -> None:
    found = counted(tmp_path, (None, 11, 11, 7))
    assert (found.function.tolist(), found.weight.tolist()) == ([1], [7])


def test_nothing_ran(tmp_path: Path) -> None:
    assert counted(tmp_path, (None, 99, 99, 1)).function.tolist() == []


def test_a_program_without_functions_has_none_that_ran(tmp_path: Path) -> None:
    flow, program = flow_of(tmp_path, CODE, BASE, [(None, 0, 1, 5), (1, 0, 1, 5)], [])
    assert not len(program.functions)
    assert function_flow(flow, program.functions).function.tolist() == []


def test_early_and_hot_functions_come_first_and_late_ones_by_their_calls() -> None:
    none = np.zeros(0, np.int64)
    size = np.full(6, 10, np.uint64)
    weight = np.array([900, 1, 800, 1, 700, 2], np.uint64)  # 0, 2 and 4 are hot
    calls = FunctionCalls(none, none, none.astype(np.uint64))
    flow = FunctionFlow(np.arange(6), size, weight, calls)
    is_early = np.array([0, 1, 1, 0, 1, 1], np.bool_)
    rank = np.array([0, 2, 9, 1, 3, 0])
    assert by_first_runs(flow, rank, is_early).tolist() == [4, 2, 5, 1, 0, 3]


def test_functions_are_called_by_their_best_names() -> None:
    calls = FunctionCalls(np.array([0]), np.array([1]), np.array([7], np.uint64))
    ones = np.ones(2, np.uint64)
    flow = FunctionFlow(np.arange(2), ones, ones, calls)
    found = NamedFlow(flow, [("f", "alias_of_f"), ("g", "alias_of_g")], {})
    assert list(lines_of(found)) == ["f g 7"]
