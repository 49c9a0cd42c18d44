"""Call probes by line tables: where a program has both, they are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import walked
from builders.fixtures import ROOT
from builders.llvm_profiles import converted

from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import InlineTree, ProbeTable
from lbr2pgo.support.tables import taken

Built = Callable[..., Path]

C = ROOT / "testbins/src/interp.c"
CXX = ROOT / "testbins/src/shapes.cpp"
PROBED = "-fuse-ld=lld -fpseudo-probe-for-profiling"


@pytest.fixture(params=[("clang-22 -O1", C), ("clang++-22 -O2 -g1", CXX)], ids=["c", "c++"])
def program(request: pytest.FixtureRequest, built: Built) -> Program:
    command, source = request.param
    return Program.open(built(f"{command} {PROBED}", source))


def calls_of(table: ProbeTable) -> set[tuple[object, ...]]:
    """Call probes: address, what they are in, and what they say."""
    return {
        (int(table.address[row]), tuple(table.tree.path(int(table.node[row]))),
         int(table.index[row]), int(table.kind[row]), int(table.attributes[row]))
        for row in np.flatnonzero(table.is_call)
    }  # fmt: skip


def by_lines(table: ProbeTable, program: Program) -> ProbeTable:
    """The probes of blocks, and of all calls by the line table."""
    debug = DebugInfo.open(program.image)
    calls = table.address[table.is_call][::-1]
    return with_calls(taken(table, ~table.is_call), calls, debug)


def test_line_tables_tell_the_probes_of_calls(program: Program) -> None:
    """All but those inlined at an unknown call, of which there may be several."""
    table = program.probes.table()
    expected, found = calls_of(table), calls_of(by_lines(table, program))
    unknown = {call for call in expected if 0 in table.tree.site[list(call[1][1:])]}
    assert len(expected - unknown) >= 10
    assert expected - unknown <= found <= expected


def test_what_is_told_by_probes_is_not_asked_of_lines(program: Program) -> None:
    table = program.probes.table()
    debug = DebugInfo.open(program.image)
    assert with_calls(table, table.address, debug) is table
    assert with_calls(taken(table, ~table.is_call), table.address[:0], debug).kind.max() == 0
    assert not debug.units_decoded
    none = taken(table, np.array([], np.int64))
    assert with_calls(none, table.address, debug) is none


def test_of_two_functions_inlined_at_one_call_neither_is_guessed(program: Program) -> None:
    table = program.probes.table()
    inner = next(int(node) for node in table.node[table.is_call] if table.tree.parent[node] >= 0)
    tree = table.tree
    twin = InlineTree(
        np.append(tree.guid, np.uint64(1)), np.append(tree.parent, tree.parent[inner]),
        np.append(tree.site, tree.site[inner]), np.append(tree.function, -1), tree.descriptors,
    )  # fmt: skip
    found = by_lines(replace(table, tree=twin), program)
    assert not any(inner in call[1] for call in calls_of(found))
    assert any(inner in call[1] for call in calls_of(by_lines(table, program)))


def test_calls_have_the_same_targets_whatever_the_target(built: Built, tmp_path: Path) -> None:
    """Probes are numbered before anything is done for one."""
    called = []
    for target in ("x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu -mno-relax"):
        binary = built(f"clang-22 -O1 {PROBED} --target={target}", C)
        converted(tmp_path, walked(tmp_path, binary), binary)
        profile = text.read(tmp_path / "ours.prof")
        called.append({call for each in profile.functions.values() for call in targets(each)})
    assert len(called[0]) >= 10
    assert called[0] == called[1] == called[2]


def targets(function: FunctionSamples) -> Iterator[tuple[object, ...]]:
    """Calls: where they were made, by which function, and of which."""
    for location, counts in function.call_targets.items():
        yield from ((function.name, location, callee) for callee, count in counts.items() if count)
    for inlined in function.callsites.values():
        for callee in inlined.values():
            yield from targets(callee)
