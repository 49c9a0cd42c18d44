"""Files of graphs, read back by networkx."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import networkx as nx
import pytest
from builders.evidence import gather
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_network import flow_network
from lbr2pgo.dumping.graph_files import GRAPH_FILES, plain
from lbr2pgo.program.code.named_functions import find_function


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
