"""Graphs of calls, against the tables that say the same."""

from __future__ import annotations

import networkx as nx
import pytest
from builders.elf import Function
from builders.evidence import evidence, flags, gather, gather_sources, program, source, with_limits
from builders.recordings import PIE, RECORDING, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.call_edges import call_edges
from lbr2pgo.analyses.call_network import call_network
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.hot_functions import hot_functions
from lbr2pgo.analyses.indirect_targets import indirect_targets

MISSED, HIT = flags(missed=True), flags()


@pytest.fixture(scope="module", params=["interp", "shapes"])
def recorded(request: pytest.FixtureRequest) -> Evidence:
    if request.param == "interp":
        return gather((RECORDING,), PIE).evidence
    recording = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
    return gather((recording,), TESTBINS / "x86-64" / "shapes.pie").evidence


def test_edges_are_the_table_of_calls(recorded: Evidence) -> None:
    rows = call_edges(recorded, None).records()
    wanted = {(row["caller"], row["callee"]): row["count"] for row in rows}
    assert nx.get_edge_attributes(call_network(recorded), "count") == wanted != {}


def test_nodes_are_the_functions_that_ran(recorded: Evidence) -> None:
    graph = call_network(recorded)
    rows = {row["function"]: row for row in hot_functions(recorded, None).records()}
    assert rows.keys() <= set(graph)
    for name, row in rows.items():
        node = graph.nodes[name]
        assert {key: node[key] for key in ("function", "address", "branches", "mispredicted")} == {
            key: row[key] for key in ("function", "address", "branches", "mispredicted")
        }
        assert node.get("line") == row["line"]
    executed = nx.get_node_attributes(graph, "executed")
    shares = {name: row["instructions_share"] for name, row in rows.items()}
    total = sum(executed.values())
    assert {n: executed[n] / total for n in shares} == pytest.approx(shares)


def test_mispredictions_are_those_of_indirect_calls(recorded: Evidence) -> None:
    graph = call_network(recorded)
    wanted: dict[tuple[object, object], list[int]] = {}
    starts = nx.get_node_attributes(graph, "address")
    for row in indirect_targets(recorded, None)[1].records():
        source, target = row["site_function"], row["target_function"]
        is_start = target in starts and row["target_address"] == starts[target]
        if is_start and source != target:
            sums = wanted.setdefault((source, target), [0, 0])
            sums[0] += row["count"]
            sums[1] += row["mispredicted"]
    found = {
        (source, target): [edge["indirect"], edge["mispredicted"]]
        for source, target, edge in graph.edges(data=True)
        if edge["indirect"]
    }
    assert found == wanted


def test_direct_indirect_and_tail_calls_of_one_pair() -> None:
    found = evidence(
        Sample([(0x1020, 0x1040, MISSED)]), Sample([(0x1020, 0x1040, HIT)]),
        Sample([(0x1018, 0x1040, MISSED)]), Sample([(0x1000, 0x1040, MISSED)]),
    )  # fmt: skip
    graph = call_network(found)
    assert graph.edges["dispatch", "g"] == {"count": 2, "indirect": 2, "tail": 0, "mispredicted": 1}
    assert graph.edges["main", "g"] == {"count": 2, "indirect": 1, "tail": 1, "mispredicted": 1}
    alone = call_network(evidence(Sample([(0x1000, 0x1040, MISSED)])))
    assert alone.edges["main", "g"] == {"count": 1, "indirect": 0, "tail": 0}
    assert graph.graph["file"] == "toy"


def test_what_is_outside_has_a_name_and_no_code() -> None:
    graph = call_network(evidence(Sample([(0x1020, 0x7FFF0000)]), Sample([(0x7FFF0000, 0x1000)])))
    assert graph.nodes["[outside]"] == {"function": "[outside]"}
    assert set(graph.edges) == {("dispatch", "[outside]"), ("[outside]", "main")}


def test_functions_that_share_a_name_stay_two() -> None:
    functions = (Function("main", 0x1000, 6), Function("f", 0x1010, 1), Function("f", 0x1020, 1))
    code = {0x1000: "ffd0", 0x1002: "ffd0", 0x1010: "c3", 0x1020: "c3"}
    toy = program(functions, code)
    calls = source(Sample([(0x1000, 0x1010)]), Sample([(0x1002, 0x1020)]))
    graph = call_network(gather_sources([calls], toy).evidence)
    assert set(graph.successors("main")) == {"f (toy 0x1010)", "f (toy 0x1020)"}
    assert {graph.nodes[name]["function"] for name in graph.successors("main")} == {"f"}


def test_what_is_not_known_is_left_out_and_said(recorded: Evidence) -> None:
    graph = call_network(with_limits(recorded, is_filtered=True))
    assert not nx.get_node_attributes(graph, "executed")
    assert nx.get_node_attributes(graph, "branches")
    assert any("filtered" in note for note in graph.graph["notes"])
    silent = call_network(evidence(Sample([(0x1020, 0x1040, 0)])))
    assert silent.edges["dispatch", "g"] == {"count": 1, "indirect": 1, "tail": 0}
    assert "mispredicted" not in silent.nodes["dispatch"]
    assert any("software LBR" in note for note in call_network(recorded).graph["notes"])


def test_a_recording_without_branches_of_the_program() -> None:
    assert not call_network(evidence()).edges
