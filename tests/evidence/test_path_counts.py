"""Samples of random walks: what is known of their ways along chains is what was walked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders.evidence import gather_sources
from builders.sources import MemorySource, Sample
from builders.walks import LIBRARY, RandomProgram, Walk, walk

from lbr2pgo.analyses.chains import plan_paths
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.evidence.path_counts import PATHS, WAYS, ChainPlan, PathCounts
from lbr2pgo.program.program import Program
from lbr2pgo.sources.base import Addresses

DEPTH = 24
SEEDS = range(12)


def windows(walked: Walk, seed: int) -> list[range]:
    """Numbers of the branches in each sample, without stacks that look as if one were a copy."""
    chooser = random.Random(seed)
    ends = sorted(chooser.sample(range(DEPTH, len(walked.branches)), 60))
    return [
        range(end - DEPTH, end)
        for end in ends
        if walked.branches[end - 1] != walked.branches[end - 2]
    ]


def begun(walked: Walk, window: range) -> Iterator[int]:
    """Addresses of the instructions that ran, oldest first, as far as the entries tell."""
    for number in window[:-1]:
        yield from (instruction.address for instruction in walked.lines[number])
    target = walked.branches[window[-1]][1]
    if walked.branches[window[-1]][0] < LIBRARY and target < LIBRARY:
        yield target


def counted(plan: ChainPlan, ways: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    known, went_on = np.zeros((2, plan.slots, WAYS), np.int64)
    is_start = np.diff(plan.before) > 0
    for rows in ways:
        starts = [row for row in rows if row >= 0 and is_start[row]]
        for function in range(plan.functions):
            own = [row for row in starts if plan.owner[plan.before[row]] == function]
            way = 0
            for before, here in pairwise(own):
                slot = plan.slot[before]
                goes_on = slot >= 0 and plan.slot[here] == slot + 1
                if goes_on or (slot >= 0 and not plan.is_entry[plan.before[here]]):
                    known[slot, way] += 1
                    went_on[slot, way] += goes_on
                way = way + 1 if goes_on else 0
    return known, went_on


def recorded(seed: int, directory: Path) -> tuple[Walk, list[range], Evidence]:
    """A walk, its windows, and what samples of these tell."""
    source = RandomProgram(seed)
    (directory / "program").write_bytes(source.elf())
    walked = walk(source, 3000, seed)
    seen = windows(walked, seed)
    samples = [Sample([walked.branches[i] for i in reversed(window)]) for window in seen]
    memory = MemorySource(samples, addresses=Addresses.IMAGE)
    program = Program.open(directory / "program")
    return walked, seen, gather_sources([memory], program).evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_ways_are_those_of_the_walk(seed: int, tmp_path: Path) -> None:
    walked, seen, found = recorded(seed, tmp_path)
    code = found.flow.instructions
    ways = [
        code.index_of(np.array(list(begun(walked, window)), np.uint64)).tolist() for window in seen
    ]
    known, went_on = counted(plan_paths(found), ways)
    paths = found.found(PATHS)
    assert paths is not None
    np.testing.assert_array_equal(paths.known, known)
    np.testing.assert_array_equal(paths.went_on, went_on)


def test_the_walks_go_along_chains_and_leave_them(tmp_path: Path) -> None:
    """So that the test before this one compares more than zeros."""
    paths = [recorded(seed, tmp_path)[2].found(PATHS) for seed in SEEDS]
    went_on = sum(int(each.went_on[:, 1:].sum()) for each in paths if each is not None)
    known = sum(int(each.known[:, 1:].sum()) for each in paths if each is not None)
    assert 500 < went_on < known


def test_nothing_is_known_behind_a_block_that_is_followed_by_another_than_planned() -> None:
    """Chains of corrected counts may go where those that samples were followed along don't."""
    known = np.ones((5, WAYS), np.uint64)
    planned = PathCounts(np.array([-1, 1, 2, 3, -1], np.int32), known, known)
    along = lambda *rows: planned.along(np.array(rows))[0].tolist()  # noqa: E731
    assert along(1, 2, 3) == [WAYS, WAYS - 1]
    assert along(1, 2, 4) == [WAYS, 0]
    assert along(1, 3, 2) == [0, 0]
    rows = np.array([3, 1, 2])
    assert planned.of_instructions(rows).slot.tolist() == [3, 1, 2]
