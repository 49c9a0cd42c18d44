"""Measures of quality, beside what LLVM's tools say of the same profiles."""

from __future__ import annotations

import numpy as np
import pytest
from builders.elf import Function
from builders.evidence import program as small_program
from builders.recordings import NAMES, PIE, RECORDING, binary, recording

from lbr2pgo.analyses import quality
from lbr2pgo.analyses.accuracy_curves import _Shortened
from lbr2pgo.analyses.recorded_profile import RecordedProfile
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import count
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, aggregate
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replay import replay
from lbr2pgo.sources import open_source
from lbr2pgo.support.sums import overlap


def test_exact_counts_conserve_their_flow():
    """A loop that was entered 3 times and ran 12 times; then one branch of it is lost."""
    program = small_program([Function("loop", 0x1000, 4)], {0x1000: "90", 0x1001: "75fd"})
    begin, end = 0x1000, 0x1001

    def flow(back: int, out: int):
        rows = [
            (0, begin, end, TO | END | BRANCH, 3),
            (end, begin, end, FROM | TO | END | BRANCH, back),
            (end, 0, 0, FROM | BRANCH, out),
        ]
        columns = [np.array(c, np.uint64) for c in zip(*rows, strict=True)]
        counts = aggregate(*columns[:3], columns[3].astype(np.uint8), columns[4], columns[4] * 0)
        return replay(counts, program)

    assert quality.conservation(flow(9, 3)) == 1
    assert quality.conservation(flow(9, 0)) == pytest.approx(9 / 12)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_flow_is_nearly_conserved(name):
    program = Program.open(binary(name))
    found = read_and_replay(Inputs((recording(name),), binary(name)))
    measured = quality.measure(RecordedProfile(found, program), program)
    assert 0.95 < measured.conservation < 1
    assert measured.stale.share == 0
    assert measured.bias is None


def test_what_no_recorder_sees_is_no_lost_flow():
    """The fewer entries a stack has, the more fall-throughs are behind newest branches."""
    program, source = Program.open(PIE), _Shortened(open_source(RECORDING), 4)
    counts = count(source, program.image.layout, CountingOptions()).counts
    flow = replay(counts, program)
    lost, found = 1 - quality.conservation(flow), 1 - quality.recorded_conservation(flow, program)
    assert found < 0.8 * lost


def test_chance_is_what_independent_draws_lack():
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(200))
    draws = rng.multinomial(10_000, truth, 20).astype(np.uint64)
    lack = np.mean([1 - overlap(truth, draw) for draw in draws])
    assert quality.chance(draws[0]) == pytest.approx(lack, rel=0.1)
    assert quality.chance(draws[0] * 0) is None


def test_gates():
    found = quality.Quality(
        density=10.0, coverage=None, conservation=1.0,
        stale=Staleness(0.25, 0.1), overlap=None,
    )  # fmt: skip
    assert list(quality.Gates({"density": 10, "stale": 0.25}).failed(found)) == []
    assert list(quality.Gates({"density": 10.1, "stale": 0.2}).failed(found)) == [
        "density",
        "stale",
    ]
    assert list(quality.Gates({"coverage": 0.0, "overlap": 0.0}).failed(found)) == [
        "coverage",
        "overlap",
    ]


# ---------------------------------------------------------------------------- pseudo probes
