"""Graphs of functions, against the tables and arrays that say the same."""

from __future__ import annotations

import subprocess

import networkx as nx
import pytest
from builders.evidence import evidence, gather, with_limits
from builders.fixtures import Tool
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_network import flow_network
from lbr2pgo.analyses.latency import timed_blocks
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.replay.block_counts import count_blocks

BACK, LONG, SHORT, FORWARD = (0x1016, 0x1005), (0x1012, 0x1015), (0x1009, 0x1015), (0x1006, 0x1010)
LOOP = Sample([BACK, LONG, FORWARD, BACK, SHORT, BACK, SHORT, BACK])


def graph_of(found: Evidence, name: str = "main") -> nx.DiGraph:
    return flow_network(found, find_function(found.program, name))


@pytest.fixture(scope="module")
def recorded() -> Evidence:
    return gather((RECORDING,), PIE).evidence


def test_blocks_have_their_code() -> None:
    graph = graph_of(evidence(LOOP))
    assert {0x1000, 0x1005, 0x1008, 0x1010, 0x1015, 0x1018} < set(graph)
    block = graph.nodes[0x1005]
    assert (block["address"], block["end"], block["is_entry"]) == (0x1005, 0x1008, False)
    assert [words.split()[0] for words in block["instructions"]] == ["nop", "jne"]
    assert graph.nodes[0x1000]["is_entry"]
    assert graph.graph["function"] == "main"
    assert graph.graph["file"] == "toy"


def test_blocks_have_the_lines_of_their_instructions(recorded: Evidence, tool: Tool) -> None:
    for start, block in graph_of(recorded, "walk").nodes(data=True):
        region = find_function(recorded.program, "walk")
        code = recorded.program.instructions_for(recorded.program.regions.start[[region]])
        inside = [hex(a) for a in code.address.tolist() if start <= a < block["end"]]
        command = [tool("llvm-symbolizer-22"), f"--obj={PIE}", "--no-inlines", "-s",
                   "--functions=none", *inside]  # fmt: skip
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        wanted = [line.rpartition(":")[0] for line in told]
        assert len(inside) == len(block["instructions"])
        assert block["lines"] == tuple(dict.fromkeys(wanted))


def test_edges_say_how_they_are_gone() -> None:
    found = evidence(LOOP)
    edges, outcomes = graph_of(found).edges, estimate(found)
    assert edges[0x1005, 0x1010] == {
        "kind": "taken", "count": 1, "mispredicted": 0, "probability": pytest.approx(1 / 3),
        "probability_low": outcomes.low[0], "probability_high": outcomes.high[0],
    }  # fmt: skip
    assert (edges[0x1005, 0x1008]["kind"], edges[0x1005, 0x1008]["count"]) == ("fallthrough", 2)
    assert edges[0x1005, 0x1008]["probability"] == pytest.approx(2 / 3)
    jump = edges[0x1008, 0x1015]
    assert (jump["kind"], jump["probability"], jump["probability_low"]) == ("jump", 1, 1)
    assert "probability" not in graph_of(evidence(), "main").edges[0x1005, 0x1010]


def test_a_branch_to_the_block_behind_it_is_one_edge() -> None:
    from builders.elf import Function
    from builders.evidence import gather_sources, program, source

    code = {0x1000: "90", 0x1001: "7500", 0x1003: "90", 0x1004: "ebfa"}
    toy = program((Function("main", 0x1000, 6),), code)
    samples = Sample([(0x1004, 0x1000), (0x1001, 0x1003), (0x1004, 0x1000), (0x1004, 0x1000)])
    edge = graph_of(gather_sources([source(samples)], toy).evidence).edges[0x1000, 0x1003]
    assert (edge["kind"], edge["count"], edge["probability"]) == ("fallthrough+taken", 2, 1)
    assert edge["probability_low"] <= 1 == edge["probability_high"]


def test_counts_are_those_of_the_arrays(recorded: Evidence) -> None:
    for name in ("run", "walk", "next_token"):
        region = find_function(recorded.program, name)
        graph = graph_of(recorded, name)
        cfg = recorded.program.cfg(region, recorded.indirect_targets)
        counts = count_blocks(recorded.flow, cfg)
        assert list(graph) == cfg.block_start.tolist()
        assert [block["count"] for _, block in graph.nodes(data=True)] == counts.block.tolist()
        branches = recorded.flow.branches
        for source, target, edge in graph.edges(data=True):
            if edge["kind"] == "fallthrough":
                assert "mispredicted" not in edge
                continue
            last = cfg.block_last[cfg.block_start == source]
            rows = (branches.from_ == last) & (branches.to == target)
            assert edge["count"] == branches.count[rows].sum()
            assert edge["mispredicted"] == branches.mispredicted[rows].sum()


def test_probabilities_are_those_of_outcomes(recorded: Evidence) -> None:
    """And what leaves a block sums to one, where anything was seen to."""
    found = estimate(recorded)
    seen = 0
    for name in ("run", "walk", "next_token"):
        graph = graph_of(recorded, name)
        cfg = recorded.program.cfg(find_function(recorded.program, name), recorded.indirect_targets)
        for start, last in zip(cfg.block_start.tolist(), cfg.block_last.tolist(), strict=True):
            ways = [edge for _, _, edge in graph.out_edges(start, data=True)]
            shares = [edge["probability"] for edge in ways if "probability" in edge]
            if shares and len(shares) == len(ways) > 1:
                assert sum(shares) == pytest.approx(1)
            for edge in ways:
                for row in (found.address == last).nonzero()[0].tolist():
                    low, high = found.low[row], found.high[row]
                    if edge["kind"] == "fallthrough":
                        low, high = 1 - high, 1 - low
                    assert (edge["probability_low"], edge["probability_high"]) == (low, high)
                    seen += 1
    assert seen > 10


def test_cycles_are_those_of_runs_that_are_one_block(recorded: Evidence) -> None:
    graph = graph_of(recorded, "run")
    cfg = recorded.program.cfg(find_function(recorded.program, "run"), recorded.indirect_targets)
    blocks = set(zip(cfg.block_start.tolist(), cfg.block_last.tolist(), strict=True))
    wanted = {
        run.start: run.times.trimmed_mean
        for run in timed_blocks(recorded, None)
        if (run.start, run.end) in blocks
    }
    assert nx.get_node_attributes(graph, "cycles") == wanted
    assert wanted


def test_what_is_not_known_is_left_out_and_said() -> None:
    """A filter hides fall-throughs, and some recorders say nothing of predictions."""
    graph = graph_of(evidence(LOOP, filters=1 << 10 | 1))
    assert not nx.get_node_attributes(graph, "count")
    assert "count" not in graph.edges[0x1005, 0x1008]
    assert graph.edges[0x1005, 0x1010]["count"] == 1
    assert "probability" not in graph.edges[0x1005, 0x1010]
    assert any("filtered" in note for note in graph.graph["notes"])
    silent = graph_of(evidence(Sample([(*branch, 0) for branch in LOOP.stack])))
    assert not nx.get_edge_attributes(silent, "mispredicted")


def test_it_says_what_was_simulated_and_what_is_independent(recorded: Evidence) -> None:
    assert any("software LBR" in note for note in graph_of(recorded, "run").graph["notes"])
    real = graph_of(with_limits(recorded, is_simulated=False), "walk").graph["notes"]
    assert not any("software LBR" in note or "independent." in note for note in real)
