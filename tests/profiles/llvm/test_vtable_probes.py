"""Probes of loads that no call takes; those of calls are in test_vtables.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Tool

from lbr2pgo.profiles.llvm.vtable_probes import probes_of_loads
from lbr2pgo.program.code.loaded_calls import calls_through
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeTable
from lbr2pgo.support.addresses import placed_array
from lbr2pgo.support.tables import taken

PROGRAM = """
#define LOAD(label, from) \\
  ({ void *to; __asm__ volatile(#label ": movq (%1), %0" : "=r"(to) : "r"(from)); to; })
volatile int noted;
__attribute__((always_inline)) inline void note(void) { noted = 1; }
__attribute__((always_inline)) inline void *inner(void **table) { return LOAD(inside, table); }
__attribute__((noinline)) void *own(void **table) {
  note();
  return LOAD(behind, table);
}
__attribute__((noinline)) void *inlined(void **table) { note(); return inner(table); }
__attribute__((noinline)) void *branched(void **table) {
  if (!table)
    return 0;
  noted = 2;
  return LOAD(branch, table);
}
int main(void) {
  void *table[1] = {0};
  return own(table) != inlined(table) || branched(table);
}
"""
FLAGS = ("-O1", "-fuse-ld=lld", "-no-pie", "-fpseudo-probe-for-profiling")
LABELS = ("behind", "inside", "branch")


def probes(program: Program, table: ProbeTable) -> list[tuple[str, int] | None]:
    """The function and number of the probe of each load."""
    found = [program.address_of(label) for label in LABELS]
    loads = placed_array([address for address in found if address is not None])
    assert len(loads) == len(LABELS)
    debug = DebugInfo.open(program.image)
    rows = probes_of_loads(table, loads, calls_through(program, loads), program, debug)
    return [
        None if row < 0 else (table.tree.name(int(table.node[row])), int(table.index[row]))
        for row in rows.tolist()
    ]


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Path]) -> Program:
    return Program.open(compiled("clang-22", PROGRAM, *FLAGS, "-g"))


def test_it_is_the_block_of_the_function_that_the_load_is_of(program: Program) -> None:
    """Whatever is inlined right before."""
    assert probes(program, program.probes.table()) == [("own", 1), ("inner", 1), ("branched", 3)]


def test_without_debug_information_it_is_any_at_the_last_address(
    program: Program, tool: Tool, tmp_path: Path
) -> None:
    stripped = tmp_path / "stripped"
    command = [tool("llvm-strip-22"), "--strip-debug", program.image.path, "-o", stripped]
    subprocess.run(command, check=True)
    program = Program.open(stripped)
    found = probes(program, program.probes.table())
    assert found == [("note", 1), ("note", 1), ("branched", 3)]


def test_there_is_none_if_a_branch_stands_between(program: Program) -> None:
    table = program.probes.table()
    is_of_block = [
        table.tree.name(int(node)) == "branched" and index > 1
        for node, index in zip(table.node, table.index, strict=True)
    ]
    rest = taken(table, ~np.array(is_of_block))
    assert probes(program, rest) == [("own", 1), ("inner", 1), None]
    assert probes(program, taken(table, np.zeros(len(table), np.bool_))) == [None] * 3
