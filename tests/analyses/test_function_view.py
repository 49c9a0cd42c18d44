from __future__ import annotations

import math

import pytest
from builders.evidence import evidence, gather
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.flow_graph import flow_graph, hottest_regions
from lbr2pgo.analyses.function_view import function_view

BACK, LONG, SHORT, FORWARD = (0x1016, 0x1005), (0x1012, 0x1015), (0x1009, 0x1015), (0x1006, 0x1010)
LOOP = Sample([BACK, LONG, FORWARD, BACK, SHORT, BACK, SHORT, BACK])


def main_of(found):
    return found.program.regions.by_name("main")


def test_every_instruction_is_there_with_its_count() -> None:
    found = evidence(LOOP)
    rows = {row["address"]: row for row in function_view(found, main_of(found)).code.records()}
    assert rows[0x1000]["count"] == 0
    assert rows[0x1005]["count"] == rows[0x1006]["count"] == 3
    assert (rows[0x1008]["count"], rows[0x1010]["count"]) == (2, 1)
    assert rows[0x1006]["instruction"].startswith("jne")
    assert rows[0x1006]["taken_share"] == pytest.approx(1 / 3)
    assert rows[0x1005]["taken_share"] is None
    assert [row for row in rows if rows[row]["instruction"] == "int3"]


def test_blocks_lead_on_with_shares() -> None:
    found = evidence(LOOP)
    view = function_view(found, main_of(found))
    rows = {row["address"]: row for row in view.code.records()}
    short, long = rows[0x1008]["block"], rows[0x1010]["block"]
    assert rows[0x1006]["leads_to"] == f"{short} 66.7%, {long} 33.3%"
    assert rows[0x1005]["leads_to"] == ""


def test_edges_carry_their_counts() -> None:
    found = evidence(LOOP)
    graph = flow_graph(found, main_of(found))
    cfg = graph.cfg
    edges = {
        (int(cfg.block_last[a]), int(cfg.block_start[b])): (int(n), float(share))
        for a, b, n, share in zip(
            cfg.edge_source, cfg.edge_target, graph.edge_count, graph.edge_share, strict=True
        )
    }
    assert edges[FORWARD] == (1, pytest.approx(1 / 3))
    assert edges[0x1006, 0x1008] == (2, pytest.approx(2 / 3))
    assert edges[SHORT] == (2, 1)
    assert edges[BACK] == (4, 1)
    assert edges[0x1016, 0x1018][0] == 0


def test_indirect_jumps_lead_where_they_were_seen_to_go() -> None:
    found = evidence(Sample([(0x1018, 0x1008), (0x1018, 0x1008), (0x1018, 0x1010)]))
    graph = flow_graph(found, main_of(found))
    cfg = graph.cfg
    shares = {
        int(cfg.block_start[b]): float(share)
        for a, b, share in zip(cfg.edge_source, cfg.edge_target, graph.edge_share, strict=True)
        if cfg.block_last[a] == 0x1018
    }
    assert shares == {0x1008: pytest.approx(2 / 3), 0x1010: pytest.approx(1 / 3)}


def test_what_left_a_block_sums_to_one() -> None:
    found = gather((RECORDING,), PIE).evidence
    for region, _ in hottest_regions(found, 3):
        graph = flow_graph(found, region)
        sums: dict[int, float] = {}
        for source, share in zip(
            graph.cfg.edge_source.tolist(), graph.edge_share.tolist(), strict=True
        ):
            if not math.isnan(share):
                sums[source] = sums.get(source, 0) + share
        assert sums
        assert all(total == pytest.approx(1) for total in sums.values())


def test_the_hottest_function_is_first() -> None:
    found = gather((RECORDING,), PIE).evidence
    regions = hottest_regions(found, None)
    assert found.names.region(regions[0][0]) == "run"
    assert sum(share for _, share in regions) == pytest.approx(1)


def test_a_function_that_never_ran_can_be_looked_at() -> None:
    found = evidence(LOOP)
    view = function_view(found, found.program.regions.by_name("h"))
    assert view.code.column("count") == (0, 0)
    assert view.graph.block_count.tolist() == [0]


def test_a_filtered_recording_shows_code_and_says_that_counts_are_missing() -> None:
    found = evidence(LOOP, filters=1 << 10 | 1)
    code = function_view(found, main_of(found)).code
    assert set(code.column("count")) == {0}
    assert any("filtered" in note for note in code.notes)
