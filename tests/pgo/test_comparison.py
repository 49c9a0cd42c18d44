"""What is said of costs that were made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.code_size import CodeSize
from lbr2pgo.pgo.comparison import change, changes, decided_otherwise
from lbr2pgo.pgo.measure import CountedRun, Measured
from lbr2pgo.recorders.front_end import PRESETS, FrontEndCounts

STEADY = np.linspace(0.99, 1.01, 8)
NOISY = np.array([0.9, 1.1, 0.95, 1.06, 0.9, 1.1, 0.97, 1.04])


def counted(instructions: int, taken: int) -> CountedRun:
    return CountedRun(Totals(instructions, taken, 0, 0), 0, "a")


PLAIN = Measured("plain", counted(1000, 500), np.empty(0), again=counted(1000, 500))
OTHER = Measured("other", counted(900, 300), np.empty(0))


def test_counts_of_a_program_that_repeats_itself_are_certain() -> None:
    said = "needs 10.0% fewer instructions and 40.0% fewer taken branches than"
    assert change(OTHER, PLAIN) == f"{said} the plain build; not timed"
    assert list(changes([PLAIN, OTHER, PLAIN])) == [
        f"other {said} plain; not timed.",
        "plain needs the same as plain; not timed.",
    ]


def test_what_chance_may_have_made_differ_is_noise() -> None:
    unsteady = replace(PLAIN, again=counted(1004, 500), seconds=STEADY)
    said = change(replace(OTHER, counted=counted(960, 300), seconds=STEADY * NOISY), unsteady)
    assert said.startswith("needs 40.0% fewer taken branches than the plain build; noise: 4.0% ")
    assert "fewer instructions, 0.5% more user time (1.005, 0.900 to 1.100, p = 1)" in said


def test_times_that_are_certain_are_told_with_the_counts() -> None:
    first, other = replace(PLAIN, seconds=STEADY), replace(OTHER, seconds=STEADY * 0.8)
    assert change(other, first) == (
        "needs 10.0% fewer instructions, 40.0% fewer taken branches and 20.0% less user time "
        "(0.800, 0.800 to 0.800, p = 0.0078) than the plain build"
    )
    assert list(decided_otherwise([first, other])) == []


@pytest.mark.parametrize("model", [False, True])
def test_times_that_are_too_short_tell_nothing_however_much_they_differ(model: bool) -> None:
    front_end = FrontEndCounts(PRESETS["skylake"], 1000, 500, *[0] * 8) if model else None
    run = replace(PLAIN.counted, front_end=front_end)
    short = replace(PLAIN, seconds=STEADY * 0.002, counted=run)
    said = change(replace(OTHER, seconds=STEADY * 0.001), short)
    assert said.endswith(
        "than the plain build; too short to tell: 50.0% less user time (0.500, 0.500 to 0.500, "
        "p = 0.0078)"
    )
    assert said.count("user time") == 1
    judge = "cycles of the model" if model else "counts"
    assert list(decided_otherwise([short])) == [
        f"Times of 2.0 ms are too short to tell: {judge} decide."
    ]


def test_a_clock_that_stood_still_is_no_lack_of_times() -> None:
    short = replace(PLAIN, seconds=np.array([0.001] * 7 + [0.0]))
    said = change(replace(OTHER, seconds=STEADY * 0.001), short)
    assert said.endswith("the plain build; too short to tell: the clock stood still")


def test_cycles_of_a_model_are_told_where_there_is_one() -> None:
    runs = [
        replace(each.counted, front_end=FrontEndCounts(PRESETS["skylake"], 1000, taken, *[0] * 8))
        for each, taken in ((PLAIN, 500), (OTHER, 300))
    ]
    first, other = (replace(each, counted=run) for each, run in zip((PLAIN, OTHER), runs,
                                                                    strict=True))  # fmt: skip
    assert "% fewer cycles of the model than the plain build" in change(other, first)


def test_the_size_of_the_code_is_told() -> None:
    first, other = (replace(PLAIN, size=CodeSize(size, 7)) for size in (1000, 1500))
    assert change(other, first).endswith("; code of 1.50 times the size, 7 hot pages in place of 7")
