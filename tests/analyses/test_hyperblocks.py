from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.evidence import evidence
from builders.recordings import TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.flow_graph import flow_graph, hottest_regions
from lbr2pgo.analyses.hyperblocks import LIKELY, chains, hyperblocks, saved_branches
from lbr2pgo.program.cfg import EdgeKind
from lbr2pgo.record.exact import ExactCounts
from lbr2pgo.reports.gather import gather

BACK, LONG, SHORT, FORWARD = (0x1016, 0x1005), (0x1012, 0x1015), (0x1009, 0x1015), (0x1006, 0x1010)


def rounds(*ways: str) -> Sample:
    parts = {"l": [LONG, FORWARD], "s": [SHORT]}
    return Sample([*(entry for way in ways for entry in (BACK, *parts[way])), BACK])


def test_the_likely_way_is_one_chain_across_the_layout() -> None:
    table = hyperblocks(evidence(*(rounds("l", "l", "l", "s") for _ in range(10))))
    row = next(table.records())
    assert row["chain"] == "0x1005 0x1010 0x1015"
    assert (row["blocks"], row["bytes"], row["pieces"]) == (3, 3 + 4 + 3, 3)
    # 30 times the forward branch, less 10 that would have to branch then, and 30 jumps.
    assert row["saved"] == 30 - 10 + 30
    assert row["executions"] == 40
    assert row["likelihood"] == pytest.approx(0.75)
    assert (row["function"], row["function_share"]) == ("main", 1)
    assert 0.8 < row["share"] < 1


def test_the_chain_takes_the_way_that_most_take() -> None:
    table = hyperblocks(evidence(*(rounds("s", "s", "s", "l") for _ in range(10))))
    row = next(table.records())
    assert row["chain"] == "0x1005 0x1008 0x1015"
    assert row["saved"] == 30  # the jump of the short way


def test_a_filtered_recording_says_why_there_are_none() -> None:
    table = hyperblocks(evidence(rounds("l", "s"), filters=1 << 10 | 1))
    assert table.rows == ()
    assert any("filtered" in note for note in table.notes)


RECORDINGS = [
    ("x86-64", "interp.pie"), ("x86-64", "interp.static"), ("x86-64", "shapes.pie"),
    ("x86-64", "shapes.static"), ("aarch64", "interp.pie"), ("aarch64", "shapes.pie"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "name"), RECORDINGS)
def test_chains_of_real_recordings_hold_what_they_promise(machine: str, name: str) -> None:
    found = gather(
        (TESTBINS / "recordings" / f"{machine}-{name}.perf.data",), TESTBINS / machine / name
    ).evidence
    total = 0
    for region, _ in hottest_regions(found, 10):
        graph = flow_graph(found, region)
        seen: set[int] = set()
        for chain in chains(graph):
            total += 1
            assert len(chain.edges) == len(chain.blocks) - 1 > 0
            assert seen.isdisjoint(chain.blocks)
            seen.update(chain.blocks)
            for i, edge in enumerate(chain.edges):
                assert graph.cfg.edge_source[edge] == chain.blocks[i]
                assert graph.cfg.edge_target[edge] == chain.blocks[i + 1]
                assert graph.edge_share[edge] >= LIKELY
    assert total > 3


@pytest.mark.parametrize(("machine", "name"), RECORDINGS)
def test_the_saving_of_the_hottest_chain_agrees_with_the_exact_counts(
    machine: str, name: str
) -> None:
    recordings = TESTBINS / "recordings"
    found = gather(
        (recordings / f"{machine}-{name}.perf.data",), TESTBINS / machine / name
    ).evidence
    exact = _exact(recordings / f"{machine}-{name}.exact.npz", name)
    # Samples of the recording per branch that ran.
    scale = sum(int(n) for n in found.flow.branches.count.tolist()) / _taken(
        recordings / f"{machine}-{name}.exact.npz", name
    )
    best = max(
        (
            (saved_branches(graph, chain), graph, chain)
            for region, _ in hottest_regions(found, 5)
            for graph in [flow_graph(found, region)]
            for chain in chains(graph)
        ),
        key=lambda item: item[0],
    )
    saved, graph, chain = best
    truth = _exact_saving(exact, graph, chain)
    assert saved == pytest.approx(truth * scale, rel=0.3, abs=20)


def _rows(path: Path, name: str):
    exact = ExactCounts.load(path)
    image = exact.find_image(None, name)
    return exact, np.flatnonzero(exact.of_image(image))


def _taken(path: Path, name: str) -> int:
    exact, rows = _rows(path, name)
    return int(exact.count[rows][exact.taken[rows]].sum())


def _exact(path: Path, name: str) -> dict[tuple[int, int], int]:
    exact, rows = _rows(path, name)
    return {
        (source, target): count
        for source, target, count in zip(
            exact.from_[rows].tolist(), exact.to[rows].tolist(), exact.count[rows].tolist(),
            strict=True,
        )
    }  # fmt: skip


def _exact_saving(exact, graph, chain) -> int:
    cfg, saved = graph.cfg, 0
    for edge in chain.edges:
        if cfg.edge_kind[edge] in (EdgeKind.TAKEN, EdgeKind.JUMP):
            source, target = int(cfg.edge_source[edge]), int(cfg.edge_target[edge])
            branch = int(cfg.block_last[source])
            saved += exact.get((branch, int(cfg.block_start[target])), 0)
            saved -= exact.get((branch, int(cfg.block_end[source])), 0)
    return saved
