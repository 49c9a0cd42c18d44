"""Which call stands between two functions, in a program whose calls are known."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.evidence.contexts.known_calls import KnownCalls
from lbr2pgo.evidence.contexts.unwound_code import TouchedCode
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import ReplayOptions
from lbr2pgo.support.addresses import image_array

SOURCE = """
#define APART __attribute__((noinline))
volatile int sink;
typedef int (*function)(int);
APART int leaf(int a) { sink += a; return a; }
APART int once(int a) { sink += leaf(a) + 1; return sink; }
APART int twice(int a) { sink += leaf(a) ^ leaf(a + 1); return sink; }
APART int jumps(int a) { return once(a + 2); }
APART int end(int a) { return leaf(a + 3); }
APART int calls_end(int a) { sink += end(a) + 1; return sink; }
APART int lone(int a) { sink -= a; return a; }
APART int calls_lone(int a) { sink += lone(a) + 1; return sink; }
APART int points(function f) { sink += f(1) + 1; return sink; }
int main(int n, char **v) {
  function all[] = {once, twice, calls_lone};
  sink += once(n); sink += twice(n); sink += jumps(n); sink += calls_end(n);
  sink += points(all[n % 3]);
  return sink;
}
"""


class Calls:
    """The program's calls, by the functions that they are in and lead to."""

    def __init__(self, path: Path) -> None:
        self.program = Program.open(path)
        symbols = self.program.symbols
        self.functions = dict(zip(symbols.names, symbols.start.tolist(), strict=True))
        self.code = TouchedCode(self.program, ReplayOptions())
        starts = image_array([self.functions["main"], self.functions["points"]])
        table = self.program.instructions_for(starts)
        is_pointer = table.kind == Kind.INDIRECT_CALL
        (self.pointer,) = table.address[is_pointer].tolist()

    def of(self, outer: str, inner: str) -> list[int]:
        """Where one function calls another one."""
        start = image_array([self.functions[outer]])
        regions = self.program.regions
        table = self.program.instructions_for(start)
        is_here = regions.containing(table.address) == regions.containing(start)
        is_call = is_here & (table.kind == Kind.CALL) & (table.target == self.functions[inner])
        found: list[int] = table.address[is_call].tolist()
        return found

    def between(self, call: int, inner: str, seen: tuple[str, ...] = ()) -> int:
        regions = self.program.regions
        targets = {self.pointer: [self.functions[name] for name in seen]} if seen else {}
        number = regions.parent[regions.containing(image_array([self.functions[inner]]))]
        found = KnownCalls(self.code, targets).between(image_array([call]), number)
        assert found.dtype == np.uint64
        return int(found[0])


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Calls:
    where = tmp_path_factory.mktemp("calls")
    (where / "p.c").write_text(SOURCE)
    command = [tool("clang-22"), "-O2", "-fno-pie", "-no-pie", "p.c", "-o", "p"]
    subprocess.run(command, cwd=where, check=True)
    return Calls(where / "p")


@pytest.mark.parametrize(
    ("outer", "caller"),
    [("once", "once"), ("jumps", "once"), ("twice", None), ("points", None)],
)
def test_the_only_call_is_found_through_tail_calls(
    outer: str, caller: str | None, calls: Calls
) -> None:
    (call,) = calls.of("main", outer)
    wanted = calls.of(caller, "leaf") if caller else [0]
    assert [calls.between(call, "leaf")] == wanted


def test_the_call_may_lead_there_by_a_tail_call(calls: Calls) -> None:
    (call,) = calls.of("main", "calls_end")
    assert [calls.between(call, "leaf")] == calls.of("calls_end", "end")


def test_a_pointer_leads_where_it_was_seen_to_lead(calls: Calls) -> None:
    assert [calls.between(calls.pointer, "leaf", ("once",))] == calls.of("once", "leaf")
    assert calls.between(calls.pointer, "leaf", ("once", "twice")) == 0
    (call,) = calls.of("main", "points")
    assert calls.between(call, "twice", ("once",)) == 0
    assert calls.between(call, "twice", ("twice",)) == calls.pointer


def test_a_pointer_that_was_not_seen_leads_to_the_only_call_in_the_program(calls: Calls) -> None:
    assert [calls.between(calls.pointer, "lone")] == calls.of("calls_lone", "lone")
    assert calls.between(calls.pointer, "leaf") == 0


def test_a_call_out_of_the_program_tells_nothing(calls: Calls) -> None:
    assert calls.between(calls.of("main", "once")[0], "main") == 0
