"""Fall-throughs behind the newest branches of stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.analyses.accuracy import measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.program import Program
from lbr2pgo.replay.newest_runs import CORRECTED, impute

Row = tuple[int, int, int | None, int, int]
"""Source, target, end, count, mispredicted."""


def counts_of(rows: Sequence[Row]) -> BranchCounts:
    columns = np.array([[a, b, c or 0, n, m] for a, b, c, n, m in rows], np.uint64).reshape(-1, 5).T
    bits = [BRANCH | FROM | TO | (0 if row[2] is None else END) for row in rows]
    return aggregate(*columns[:3], np.array(bits, np.uint8), *columns[3:])


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    small = st.integers(1, 4)
    ends = st.none() | st.integers(5, 8)
    found = []
    for _ in range(draw(st.integers(0, 12))):
        count = draw(st.integers(1, 60))
        found.append((draw(small), draw(small), draw(ends), count, draw(st.integers(0, count))))
    return found


@given(rows())
def test_branches_keep_their_counts_and_mispredictions(found: list[Row]) -> None:
    before, after = counts_of(found), impute(counts_of(found))
    for name in ("from_", "to", "known", "count", "mispredicted"):
        assert (getattr(before.branches(), name) == getattr(after.branches(), name)).all()
    assert (after.mispredicted <= after.count).all()


@given(rows())
def test_each_branch_has_a_fall_through_where_its_target_has_one(found: list[Row]) -> None:
    before, after = counts_of(found), impute(counts_of(found))
    added = int(after.runs().count.sum()) - int(before.runs().count.sum())
    assert added == after.tallies[CORRECTED]
    known = set(before.runs().start.tolist())
    open_ = after.to[~after.has(END)]
    assert not known & set(open_.tolist())


@given(rows())
def test_fall_throughs_from_a_place_keep_their_shares(found: list[Row]) -> None:
    before, after = counts_of(found).runs(), impute(counts_of(found)).runs()
    assert (before.start == after.start).all()
    assert (before.end == after.end).all()
    for start in np.unique(before.start):
        one, two = before.count[before.start == start], after.count[before.start == start]
        exact = one / one.sum() * two.sum()
        assert (np.abs(two - exact) <= len(found)).all()


def test_an_end_that_nothing_tells_stays_unknown() -> None:
    counts = counts_of([(1, 9, None, 4, 1)])
    assert impute(counts).known.tolist() == counts.known.tolist()
    assert impute(counts).tallies[CORRECTED] == 0


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


def test_a_recording_comes_nearer_to_what_ran(program: Program) -> None:
    exact = exact_edges_of(Path(str(RECORDING).replace(".perf.data", ".exact.npz")), program)
    raw, corrected = (
        measure(
            convert(ConvertOptions((RECORDING,), PIE, correct_runs=chosen)).flow, exact, program
        )
        for chosen in (False, True)
    )
    assert corrected.edges.overlap > raw.edges.overlap


def test_where_branches_and_fall_throughs_are_told_apart_none_is_missing() -> None:
    apart = aggregate(
        *np.array([[1, 9, 0, 5], [2, 9, 0, 3], [0, 9, 20, 7]], np.uint64).T[:3],
        np.array([BRANCH | FROM | TO, BRANCH | FROM | TO, TO | END], np.uint8),
        np.array([5, 3, 7], np.uint64),
        np.zeros(3, np.uint64),
    )
    assert impute(apart).tallies[CORRECTED] == 1


def test_saved_counts_are_corrected_once(tmp_path: Path) -> None:
    saved = tmp_path / "counts"
    done = convert(ConvertOptions((RECORDING,), PIE, (output("counts", saved),), correct_runs=True))
    again = convert(ConvertOptions((saved,), PIE, correct_runs=True))
    assert again.tallies[CORRECTED] == done.tallies[CORRECTED]
    assert (again.counts.count == done.counts.count).all()


def test_the_waterfall_says_how_many_were_added(tmp_path: Path) -> None:
    outputs = (output("fdata", tmp_path / "f"), output("llvm", tmp_path / "l"))
    raw = convert(ConvertOptions((RECORDING,), PIE)).tallies
    done = convert(ConvertOptions((RECORDING,), PIE, outputs, correct_runs=True)).tallies
    assert 0 < done[CORRECTED] <= done["samples_mapped"]
    assert done["runs_in_image"] == raw["runs_in_image"] + done[CORRECTED]
    assert done["branches_in_image"] == raw["branches_in_image"]
