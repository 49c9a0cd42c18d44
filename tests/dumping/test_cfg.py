from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable

import networkx as nx
import numpy as np
import pytest
from builders.evidence import gather
from builders.fixtures import Tool
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_network import flow_network
from lbr2pgo.dumping.cfg import GRAPH_FILES, CfgDump, plain
from lbr2pgo.program.code.cfg import EdgeKind
from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.replay.block_counts import count_blocks
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replayed import Replayed


@pytest.fixture(scope="module")
def found() -> Replayed:
    return read_and_replay(Inputs((RECORDING,), PIE))


FUNCTIONS = ("run", "main", "next_token", "compile_expression", "walk")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_counts_are_those_of_the_runs_and_branches(found: Replayed, name: str) -> None:
    """Judged by going through the runs one by one."""
    flow, row = found.flow, find_function(found.program, name)
    cfg = found.program.cfg(row, flow.indirect_targets())
    counts = count_blocks(flow, cfg)
    runs = [
        (start, end, count)
        for start, end, count, valid in zip(
            *(column.tolist() for column in (flow.judged.runs.start, flow.judged.runs.end,
                                             flow.judged.runs.count, flow.judged.valid)),
            strict=True,
        ) if valid
    ]  # fmt: skip
    for block in range(len(cfg)):
        start, last = int(cfg.block_start[block]), int(cfg.block_last[block])
        inside = [a for a in flow.instructions.address.tolist() if start <= a <= last]
        over = [sum(n for a, b, n in runs if a <= address <= b) for address in inside]
        assert counts.block[block] == max(over)
    branches = flow.branches
    for edge in range(len(cfg.edge_source)):
        last = int(cfg.block_last[cfg.edge_source[edge]])
        target = int(cfg.block_start[cfg.edge_target[edge]])
        if cfg.edge_kind[edge] == EdgeKind.FALLTHROUGH:
            assert counts.edge[edge] == sum(n for a, b, n in runs if a <= last < b)
        else:
            rows = (branches.from_ == last) & (branches.to == target)
            assert counts.edge[edge] == branches.count[rows].sum()


def test_every_branch_inside_a_function_is_on_an_edge(found: Replayed) -> None:
    """But those that go to where the function was called from or was entered."""
    flow, row = found.flow, find_function(found.program, "run")
    cfg = found.program.cfg(row, flow.indirect_targets())
    inside = (cfg.block_of(flow.branches.from_) >= 0) & (cfg.block_of(flow.branches.to) >= 0)
    taken = count_blocks(flow, cfg).edge[cfg.edge_kind != EdgeKind.FALLTHROUGH]
    assert int(taken.sum()) == int(flow.branches.count[inside].sum()) > 0


def test_a_function_without_samples(found: Replayed) -> None:
    row = int(np.flatnonzero(np.array(list(found.program.regions.name)) == "_start")[0])
    text = "\n".join(CfgDump(found.program, row, found.flow).lines())
    assert "ran 0 times, entry" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_holds_every_block_edge_and_transfer(found: Replayed, name: str) -> None:
    row = find_function(found.program, name)
    cfg = found.program.cfg(row, found.flow.indirect_targets())
    head, *text = CfgDump(found.program, row, found.flow).lines()
    assert head.startswith(f"{name}: {len(cfg)} blocks, {len(cfg.edge_source)} edges, ")
    kinds = [line.split()[0] for line in text]
    assert kinds.count("block") == len(cfg)
    assert kinds.count("calls") == len(cfg.calls)
    assert kinds.count("leaves") == len(cfg.exits)
    assert len(text) == len(cfg) + len(cfg.edge_source) + len(cfg.calls) + len(cfg.exits)


def test_without_a_recording_there_are_no_counts(found: Replayed) -> None:
    text = "\n".join(CfgDump(found.program, find_function(found.program, "walk")).lines())
    assert "times" not in text
    assert re.search(r"falls through to block \d+$", text, re.MULTILINE)


def test_the_graph_for_graphviz(found: Replayed) -> None:
    row = find_function(found.program, "run")
    cfg = found.program.cfg(row, found.flow.indirect_targets())
    first, *body, last = CfgDump(found.program, row, found.flow).dot()
    assert (first, last) == ('digraph "run" {', "}")
    assert sum(" -> " in line for line in body) == len(cfg.edge_source)
    assert sum(line.startswith("  b") and " -> " not in line for line in body) == len(cfg)
    assert all(line.count('"') % 2 == 0 for line in body)


def test_graphviz_reads_it(found: Replayed) -> None:
    if shutil.which("dot") is None:
        pytest.skip("dot (graphviz) is not installed")
    text = "\n".join(CfgDump(found.program, find_function(found.program, "main"), found.flow).dot())
    subprocess.run(["dot", "-Tplain"], input=text, text=True, check=True, capture_output=True)


def test_names_from_files_stay_inside_their_quotes(tmp_path, tool: Tool) -> None:
    """A symbol may be called anything."""
    from lbr2pgo.program.program import Program

    source, binary = tmp_path / "a.s", tmp_path / "a"
    source.write_text(
        ".globl _start\n.type _start,@function\n_start: ret\n.size _start, .-_start\n"
    )
    subprocess.run([tool("gcc"), "-nostdlib", "-static", source, "-o", binary], check=True)
    evil = tmp_path / "evil"
    command = [tool("llvm-objcopy-22"), '--redefine-sym=_start=a"];\x1b\\b', binary, evil]
    subprocess.run(command, check=True)
    program = Program.open(evil)
    dump = CfgDump(program, find_function(program, 'a"];\x1b\\b'))
    first, *_, node, _ = dump.dot()
    assert first == 'digraph "a\\"];\\\\x1b\\\\b" {'
    assert node.endswith('<a\\"];\\\\x1b\\\\b>"];')


def test_cpp_and_split_functions() -> None:
    binary = TESTBINS / "x86-64" / "shapes.static"
    recording = TESTBINS / "recordings" / "x86-64-shapes.static.perf.data"
    found = read_and_replay(Inputs((recording,), binary))
    targets = found.flow.indirect_targets()
    hot = np.unique(found.program.regions.containing(found.flow.judged.runs.start))
    for row in hot[hot >= 0].tolist():
        cfg = found.program.cfg(row, targets)
        text = list(CfgDump(found.program, row, found.flow).lines())
        assert sum(line.startswith("block ") for line in text) == len(cfg)


def from_graphml(lines: Iterable[str]) -> nx.DiGraph:
    graph = nx.parse_graphml("\n".join(lines))
    for name in ("node_default", "edge_default"):
        graph.graph.pop(name, None)
    return graph


def from_json(lines: Iterable[str]) -> nx.DiGraph:
    return nx.node_link_graph(json.loads("\n".join(lines)), edges="edges")


READERS = {"graphml": from_graphml, "json": from_json}
Read = Callable[[nx.DiGraph], nx.DiGraph]


@pytest.fixture(params=READERS)
def written_and_read(request: pytest.FixtureRequest) -> Read:
    name = request.param
    return lambda graph: READERS[name](GRAPH_FILES[name](graph))


@pytest.fixture(scope="module")
def recorded() -> Evidence:
    return gather((RECORDING,), PIE).evidence


def test_every_format_is_read_back() -> None:
    assert READERS.keys() == GRAPH_FILES.keys()


def same(one: nx.DiGraph, other: nx.DiGraph) -> bool:
    return (one.graph, dict(one.nodes(data=True)), one.adj) == (
        other.graph, dict(other.nodes(data=True)), other.adj,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["run", "walk", "main", "next_token", "_start"])
def test_what_is_written_is_read_back(
    recorded: Evidence, written_and_read: Read, name: str
) -> None:
    graph = flow_network(recorded, find_function(recorded.program, name))
    found = written_and_read(graph)
    assert same(found, plain(graph))
    for node, block in graph.nodes(data=True):
        read = found.nodes[f"{node:#x}"]
        assert [int(read[key], 16) for key in ("address", "end")] == [node, block["end"]]
        for key in ("lines", "instructions"):
            assert tuple(read.get(key, "").splitlines()) == block[key]
        for key in ("is_entry", "count", "cycles"):
            assert read.get(key) == block.get(key)
            assert type(read.get(key)) is type(block.get(key))
    for source, target, edge in graph.edges(data=True):
        assert found.edges[f"{source:#x}", f"{target:#x}"] == edge
    assert found.graph["notes"].splitlines() == list(graph.graph["notes"])


def test_texts_steer_neither_a_terminal_nor_the_format(written_and_read: Read) -> None:
    graph = nx.DiGraph(function='w\x1b[31m\n<&"\x00é')
    graph.add_node(
        0xFFFFFFFF81000000, address=0xFFFFFFFF81000000, lines=("a b\x85", "c"), instructions=()
    )
    found = written_and_read(graph)
    assert found.graph == {"function": r'w\x1b[31m\n<&"\x00é'}
    node = {"address": "0xffffffff81000000", "lines": "a b\\x85\nc"}
    assert dict(found.nodes(data=True)) == {"0xffffffff81000000": node}
