from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.evidence import evidence, gather, gather_sources, program, source, with_limits
from builders.recordings import RECORDED, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.chains import (
    LIKELY,
    ChainEdges,
    chains,
    executed_chains,
    grown,
    saved_branches,
)
from lbr2pgo.analyses.flow_graph import flow_graph, hottest_regions
from lbr2pgo.evidence.path_counts import PATHS
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.code.cfg import EdgeKind

TWO_CHOICES = {
    0x1000: "90", 0x1001: "7503", 0x1003: "90", 0x1004: "eb01", 0x1006: "90", 0x1007: "90",
    0x1008: "7503", 0x100A: "90", 0x100B: "eb01", 0x100D: "90", 0x100E: "90", 0x100F: "75ef",
    0x1011: "c3",
}  # fmt: skip
"""A loop around two choices: 1000, then 1003 or 1006, 1007, then 100a or 100d, 100e."""
BACK = (0x100F, 0x1000)
FIRST = {"l": [(0x1001, 0x1006)], "s": [(0x1004, 0x1007)]}
SECOND = {"l": [(0x1008, 0x100D)], "s": [(0x100B, 0x100E)]}


def two_choices(*rounds: str):
    """Rounds of the loop, oldest first, each by its two choices; a sample has eight of them."""
    entries = [e for first, second in rounds for e in (*FIRST[first], *SECOND[second], BACK)]
    stacks = [Sample([*reversed(entries[i : i + 24]), BACK]) for i in range(0, len(entries), 24)]
    code = program([Function("f", 0x1000, 0x12)], TWO_CHOICES)
    return gather_sources([source(*stacks)], code).evidence


def starts(found, *, executed: bool) -> list[list[int]]:
    graph = flow_graph(found, 0)
    cut = executed_chains(found, graph) if executed else chains(graph)
    return [graph.cfg.block_start[list(chain.blocks)].tolist() for chain in cut]


def test_a_chain_is_cut_where_samples_do_not_go_on() -> None:
    """Both choices are mostly `l`, but rarely both in one round."""
    found = two_choices(*["ll", "ls", "sl", "ls", "sl", "ls", "sl", "ls", "sl", "ll"] * 8)
    assert starts(found, executed=False) == [[0x1000, 0x1006, 0x1007, 0x100D, 0x100E]]
    assert starts(found, executed=True) == [[0x1000, 0x1006, 0x1007], [0x100D, 0x100E]]
    assert starts(with_limits(found, has_samples=False), executed=True) == starts(
        found, executed=False
    )


def test_a_chain_that_samples_go_along_stays_whole() -> None:
    found = two_choices(*["ll", "ll", "ll", "ss"] * 20)
    assert starts(found, executed=True) == [[0x1000, 0x1006, 0x1007, 0x100D, 0x100E]]


def test_samples_are_followed_from_the_chains_first_block() -> None:
    found = two_choices(*["ll", "ll", "ls", "sl", "sl", "ss", "ll", "ll"] * 10)
    paths = found.found(PATHS)
    assert paths is not None
    rows = found.flow.instructions.index_of(np.array([0x1000, 0x1006, 0x1007, 0x100D], np.uint64))
    known, went_on = paths.along(rows)
    # All but what ran behind the newest entry: the first block of a round is known to begin.
    assert known.tolist() == [80, 50, 50]
    assert went_on.tolist() == [50, 50, 40]
    known, went_on = paths.along(rows[2:])
    assert (known.tolist(), went_on.tolist()) == ([80], [60])


def test_functions_that_are_not_followed_keep_their_chains() -> None:
    found = two_choices(*["ll", "ls", "sl", "ls", "sl", "ls", "sl", "ls", "sl", "ll"] * 8)
    paths = found.found(PATHS)
    assert paths is not None
    nowhere = np.full_like(paths.slot, -1)
    blind = replace(found, findings={**found.findings, PATHS: replace(paths, slot=nowhere)})
    assert starts(blind, executed=True) == starts(found, executed=False)


def test_a_call_in_between_plays_no_part() -> None:
    """`main` calls g in its first block and goes on with the second."""
    stack = [(0x1006, 0x1010), (0x1041, 0x1005), (0x1000, 0x1040), (0x7FFF0000, 0x1000)]
    found = evidence(Sample(stack))
    paths = found.found(PATHS)
    assert paths is not None
    (chain, *_) = starts(found, executed=True)
    assert chain[:2] == [0x1000, 0x1005]
    known, went_on = paths.along(found.flow.instructions.index_of(np.array(chain, np.uint64)))
    assert known[0] == went_on[0] == 1


@pytest.mark.parametrize(("machine", "name"), RECORDED)
def test_chains_of_real_recordings_hold_what_they_promise(machine: str, name: str) -> None:
    found = gather(
        (TESTBINS / "recordings" / f"{machine}-{name}.perf.data",), TESTBINS / machine / name
    ).evidence
    paths = found.found(PATHS)
    assert paths is not None
    total = 0
    for region, _ in hottest_regions(found, 10):
        graph = flow_graph(found, region)
        seen: set[int] = set()
        for chain in executed_chains(found, graph):
            total += 1
            assert len(chain.edges) == len(chain.blocks) - 1 > 0
            assert seen.isdisjoint(chain.blocks)
            seen.update(chain.blocks)
            for i, edge in enumerate(chain.edges):
                assert graph.cfg.edge_source[edge] == chain.blocks[i]
                assert graph.cfg.edge_target[edge] == chain.blocks[i + 1]
                assert graph.edge_share[edge] >= LIKELY
            starts = graph.cfg.block_start[list(chain.blocks)]
            known, went_on = paths.along(found.flow.instructions.index_of(starts))
            assert (went_on >= LIKELY * known).all()
    assert total > 3


@pytest.mark.parametrize(("machine", "name"), RECORDED)
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


AHEAD_OF_A_LOOP = {
    0x1000: "90", 0x1001: "7501", 0x1003: "90", 0x1004: "90", 0x1005: "90", 0x1006: "75fc",
    0x1008: "90", 0x1009: "c3",
}  # fmt: skip
"""1000 jumps to 1004, where a loop of one block begins; behind it 1008."""


def test_blocks_that_rarely_ran_are_not_glued_to_a_loop() -> None:
    """The loop's block has no hotter way in than that of the two entries."""
    inner, ahead, entered = (0x1006, 0x1004), (0x1001, 0x1004), (0x7FFF0000, 0x1000)
    stack = [(0x1009, 0x7FFF0000), *[inner] * 20, ahead, entered]
    code = program([Function("f", 0x1000, 10)], AHEAD_OF_A_LOOP)
    found = gather_sources([source(*[Sample(stack)] * 2)], code).evidence
    graph = flow_graph(found, 0)
    assert graph.cfg.block_start.tolist() == [0x1000, 0x1003, 0x1004, 0x1008]
    assert graph.block_count.tolist() == [2, 0, 42, 2]
    assert starts(found, executed=False) == []


def test_one_count_holds_for_all_of_a_chain() -> None:
    """Each step is the only way on and half as often as the next: together they are not."""
    count = np.array([10, 30, 60, 100])
    edges = ChainEdges(np.arange(3), np.arange(1, 4), np.array([10, 30, 60]), np.ones(3))
    assert [chain.blocks for chain in grown(count, edges)] == [(2, 3)]
