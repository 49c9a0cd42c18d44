"""How much functions ran, of two in a few bytes."""

from __future__ import annotations

from pathlib import Path

from builders.elf import Function
from builders.flows import Trace, flow_of

from lbr2pgo.profiles.linker.function_flow import FunctionFlow, function_flow

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
