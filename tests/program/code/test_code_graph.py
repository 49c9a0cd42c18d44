"""Graphs of all functions at once, against those of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function, elf
from builders.recordings import PIE, STATIC

from lbr2pgo.program.code.cfg import FunctionCFG
from lbr2pgo.program.code.code_graph import CodeGraph, IndirectTargets, code_graph
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses, image_array
from lbr2pgo.support.arrays import I64

BASE = 0x1000


def whole(program: Program) -> tuple[InstructionTable, CodeGraph]:
    code = program.instructions_for(program.regions.start)
    return code, code_graph(code, program.regions)


def edges_by_address(code: InstructionTable, graph: CodeGraph) -> set[tuple[int, int]]:
    """From the last instruction of a block to the first of another, hubs left out."""
    rows = ~graph.is_hub[graph.source] & ~graph.is_hub[graph.target]
    source = code.address[graph.last[graph.source[rows]]]
    target = code.address[graph.first[graph.target[rows]]]
    return set(zip(source.tolist(), target.tolist(), strict=True))


def edges_of(cfg: FunctionCFG) -> set[tuple[int, int]]:
    source, target = cfg.block_last[cfg.edge_source], cfg.block_start[cfg.edge_target]
    return set(zip(source.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize("path", [PIE, STATIC], ids=["pie", "static"])
def test_direct_jumps_and_borders_are_those_of_the_functions_own_graphs(path: Path) -> None:
    program = Program.open(path)
    code, graph = whole(program)
    found = edges_by_address(code, graph)
    last = set(code.address[graph.last[~graph.is_hub]].tolist())
    for function in np.unique(program.functions.parent)[:400].tolist():
        cfg = program.cfg(int(program.regions.containing(program.functions.start)[function]))
        jumps = {(a, b) for a, b in edges_of(cfg) if a in last}
        assert jumps <= found
        assert set(cfg.block_last.tolist()) <= last


Pairs = tuple[tuple[int | None, int], ...]
"""Jump, if it is known, and target, from the code's start."""


def told(pairs: Pairs) -> IndirectTargets:
    jumps = image_array(0 if jump is None else BASE + jump for jump, _ in pairs)
    return IndirectTargets(jumps, image_array(BASE + target for _, target in pairs))


def graph_of(
    where: Path, code: str, functions: list[Function], targets: Pairs | None = None
) -> tuple[list[tuple[int, int]], CodeGraph]:
    path = where / "program"
    path.write_bytes(elf(bytes.fromhex(code), BASE, functions))
    program = Program.open(path)
    table = program.instructions_for(program.regions.start)
    graph = code_graph(table, program.regions, targets and told(targets))
    blocks = [
        (int(table.address[a]) - BASE, int(table.address[b]) - BASE) if a >= 0 else (-1, -1)
        for a, b in zip(graph.first.tolist(), graph.last.tolist(), strict=True)
    ]
    return blocks, graph


# 0: jmp *rax; 2: nop; 3: ret; 4: nop; 5: jmp 3
INDIRECT = "ffe0 90 c3 90 ebfc"


def test_an_indirect_jump_leads_over_a_hub_to_what_nothing_else_leads_to(tmp_path: Path) -> None:
    blocks, graph = graph_of(tmp_path, INDIRECT, [Function("f", BASE, 7)])
    hub = blocks.index((-1, -1))
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert blocks == [(0, 0), (2, 2), (3, 3), (4, 5), (-1, -1)]
    assert edges == [(0, hub), (1, 2), (3, 2), (hub, 1), (hub, 3)]
    assert graph.is_entry.tolist() == [True, False, False, False, False]
    assert graph.is_exit.tolist() == [False, False, True, False, False]


def test_a_target_of_any_jump_is_led_to_as_well(tmp_path: Path) -> None:
    blocks, graph = graph_of(tmp_path, INDIRECT, [Function("f", BASE, 7)], ((None, 3),))
    hub = blocks.index((-1, -1))
    assert graph.target[graph.source == hub].tolist() == [1, 2, 3]


def test_a_jump_whose_targets_are_told_leads_to_these_alone(tmp_path: Path) -> None:
    pairs = ((0, 2), (0, 3))
    blocks, graph = graph_of(tmp_path, INDIRECT, [Function("f", BASE, 7)], pairs)
    hub = blocks.index((-1, -1))
    assert graph.target[graph.source == hub].tolist() == [1, 2]
    assert graph.is_entry.tolist() == [True, False, False, True, False]


def test_jumps_have_tables_of_their_own(tmp_path: Path) -> None:
    # 0: jmp *rax; 2: jmp *rcx; 4: nop; 5: ret; 6: nop; 7: ret
    code = "ffe0 ffe1 90 c3 90 c3"
    pairs = ((0, 2), (0, 4), (2, 6))
    blocks, graph = graph_of(tmp_path, code, [Function("f", BASE, 8)], pairs)
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert blocks == [(0, 0), (2, 2), (4, 5), (6, 7), (-1, -1), (-1, -1)]
    assert edges == [(0, 4), (1, 5), (4, 1), (4, 2), (5, 3)]


def test_jumps_to_other_functions_are_exits_and_lead_to_entries(tmp_path: Path) -> None:
    # 0: jmp 4; 2: ret | 3: nop; 4: ret
    blocks, graph = graph_of(
        tmp_path, "eb02 c3 90 c3", [Function("f", BASE, 3), Function("g", BASE + 3, 2)]
    )
    assert blocks == [(0, 0), (2, 2), (3, 3), (4, 4)]
    assert graph.is_entry.tolist() == [True, True, True, True]
    assert graph.is_exit.tolist() == [True, True, False, True]
    assert graph.function.tolist() == [0, 0, 1, 1]


def test_a_jump_to_the_next_block_is_one_edge_with_the_fall_through(tmp_path: Path) -> None:
    blocks, graph = graph_of(tmp_path, "7400 c3", [Function("f", BASE, 3)])  # je 2; ret
    assert blocks == [(0, 0), (2, 2)]
    assert graph.is_fall.tolist() == [True]


def test_jumps_of_the_linkage_table_leave_the_program() -> None:
    program = Program.open(PIE)
    code, graph = whole(program)
    region = program.regions.containing(code.address[graph.last])
    stubs = np.append(program.regions.is_stub, False)[region] & ~graph.is_hub
    jumping = stubs & (code.kind[graph.last] == Kind.INDIRECT_JUMP)
    assert jumping.any()
    assert graph.is_exit[jumping].all()
    assert not np.isin(graph.source, np.flatnonzero(jumping)).any()


def test_graphs_of_single_functions_cost_what_these_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    index_of = InstructionTable.index_of

    def counted(table: InstructionTable, addresses: PlacedAddresses) -> I64:
        looked_up.append(len(addresses))
        return index_of(table, addresses)

    monkeypatch.setattr(InstructionTable, "index_of", counted)
    works = []
    for count in (16, 64):
        path = tmp_path / f"of{count}"
        functions = [Function(f"f{i}", BASE + i, 1) for i in range(count)]
        path.write_bytes(elf(b"\xc3" * count, BASE, functions))
        program = Program.open(path)
        looked_up.clear()
        for start in program.functions.start:
            code_graph(program.instructions_for(image_array([start])), program.regions)
        works.append(sum(looked_up))
    assert 0 < works[1] <= 4 * works[0]
