"""Profiles by what recorded them, judged by the exact counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.analyses.accuracy import executions
from lbr2pgo.analyses.accuracy_curves import InstructionCurve, Point, depth_points
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource

SHIPPED = sorted(
    path.name.removesuffix(".perf.data") for path in (TESTBINS / "recordings").glob("*.perf.data")
)
EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


@pytest.fixture(scope="module")
def points(program: Program) -> dict[tuple[int, int | None, bool], Point]:
    exact = exact_edges_of(EXACT, program)
    curve = InstructionCurve.of(exact, program)
    found = curve.points((1_000, 100_000), (0, 2))
    return {(point.samples, point.skid, point.corrected): point for point in found}


@pytest.mark.parametrize("samples", [1_000, 100_000])
@pytest.mark.parametrize("skid", [0, 2])
def test_a_flow_is_nearer_than_the_samples_alone(
    points: dict[tuple[int, int | None, bool], Point], samples: int, skid: int
) -> None:
    alone, inferred = points[samples, skid, False], points[samples, skid, True]
    assert inferred.conditional > alone.conditional + 0.05
    assert inferred.edges > alone.edges + 0.05
    assert inferred.blocks > alone.blocks
    assert (inferred.wrong or 0.0) < (alone.wrong or 0.0)


def test_more_samples_are_nearer(points: dict[tuple[int, int | None, bool], Point]) -> None:
    few, many = points[1_000, 0, True], points[100_000, 0, True]
    assert many.conditional > 0.95 > few.conditional
    assert many.blocks > 0.98 > few.blocks


def test_a_skid_moves_samples_along_the_run_and_loses_few(program: Program) -> None:
    exact = exact_edges_of(EXACT, program)
    code = program.instructions_for(exact.source[exact.source > 0])
    ran = executions(exact, code).astype(np.float64)
    moved = InstructionCurve(exact, program).later(ran)
    # What ran before each instruction ran as often as the instruction itself, but at the borders.
    assert abs(moved.sum() / ran.sum() - 1) < 0.01
    assert np.abs(moved - ran).sum() / ran.sum() < 0.02


def test_deeper_stacks_are_nearer_and_correcting_helps_the_shallow_ones(program: Program) -> None:
    source = open_source(RECORDING)
    assert isinstance(source, StackSource)
    found = list(depth_points(source, exact_edges_of(EXACT, program), program, (4, 32, 64)))
    assert [(point.depth, point.corrected) for point in found] == [
        (4, False), (4, True), (32, False), (32, True),
    ]  # fmt: skip
    edges = [point.edges for point in found]
    assert edges[0] < edges[1] < edges[2] < edges[3]


@pytest.mark.parametrize("name", SHIPPED)
def test_correcting_harms_no_recording_beyond_chance(name: str) -> None:
    machine, _, file = name.rpartition("-")
    program = Program.open(TESTBINS / machine / file)
    recording = TESTBINS / "recordings" / f"{name}.perf.data"
    source = open_source(recording)
    assert isinstance(source, StackSource)
    exact = exact_edges_of(recording.with_name(f"{name}.exact.npz"), program)
    found = list(depth_points(source, exact, program, (8, 16, 32)))
    raw, corrected = np.array([point.edges for point in found]).reshape(-1, 2).T
    assert len(raw) == 3
    # Fewer than 200 samples: what each of them adds is ten times as much.
    assert (corrected > raw - 0.0015).all()
