"""What a loop says at its end, of builds measured by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.code_size import CodeSize
from lbr2pgo.pgo.flags import WantedFlags, plain_flags, profile_flags
from lbr2pgo.pgo.goal import GOALS
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.measure import CountedRun, Measured
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.training import Training
from lbr2pgo.pgo.verdict import Built, verdict
from lbr2pgo.recorders.front_end import PRESETS, FrontEndCounts

PROFILE = Path("/w/app.prof")
PLAIN, REBUILT, FOR_BOLT = (
    ByVariables().advice(flags, {})
    for flags in (
        plain_flags(WantedFlags()), profile_flags(PROFILE, WantedFlags()),
        profile_flags(PROFILE, WantedFlags(bolt=True)),
    )
)  # fmt: skip
BUILDS = (
    Built(Path("w/app.before"), PLAIN),
    Built(Path("app"), REBUILT, (PROFILE,)),
    Built(Path("app.bolt"), FOR_BOLT, (PROFILE,), ("bolt", "app")),
)


def measured(
    build: Built, instructions: int, taken: int, seconds: float = 0, output: str = "a"
) -> Measured:
    totals = Totals(instructions, taken, 0, 0)
    times = np.full(8, seconds) * np.linspace(0.99, 1.01, 8) if seconds else np.empty(0)
    return Measured(str(build.path), CountedRun(totals, 0, output), times, CodeSize(1000, 7))


def options(measure: str | None = "./app 2") -> LoopOptions:
    return LoopOptions(
        "make", Path("app"), Training(("./app 1",), None, emulate=True), None, probes=False,
        bolt=False, measure=measure, runs=NOT_TIMED, work=Path("w"),
    )  # fmt: skip


def said(*costs: tuple[float, ...], outputs: str = "aaa") -> list[str]:
    rows = [
        measured(build, *map(int, cost[:2]), *cost[2:], output=output)
        for build, cost, output in zip(BUILDS, costs, outputs, strict=False)
    ]
    return list(verdict(BUILDS[: len(rows)], rows, options()))


def test_it_says_what_changed_what_to_ship_and_what_to_keep() -> None:
    lines = said((1000, 500), (900, 300))
    assert lines == [
        "Verdict: app needs 10.0% fewer instructions and 40.0% fewer taken branches than the plain "
        "build; not timed; code of 1.00 times the size, 7 hot pages in place of 7.",
        "Measured on: ./app 2",
        "Ship app.",
        "Keep in CFLAGS and CXXFLAGS: -O2 -g -fdebug-info-for-profiling "
        "-fprofile-sample-use=/w/app.prof",
        "Keep in LDFLAGS: -Wl,--build-id",
        "Keep /w/app.prof: every build reads it.",
    ]  # fmt: skip


def test_the_layout_is_a_step_to_keep() -> None:
    lines = said((1000, 500), (900, 300), (905, 100))
    assert lines[2] == "Ship app.bolt."
    assert "-Wl,--emit-relocs" in lines[4]
    assert lines[-1] == "Keep as the last step: bolt app"


def test_times_decide_where_there_are_any() -> None:
    lines = said((1000, 500, 2.0), (990, 490, 1.5), (900, 100, 1.8))
    assert (
        " branches and 25.0% less user time (0.750, 0.750 to 0.750, p = 0.0078) than the plain "
        "build; code of" in lines[0]
    )
    assert lines[2] == "Ship app."


def test_time_that_is_noise_is_said_and_counts_decide() -> None:
    lines = said((1000, 500, 2.0), (900, 300, 2.0))
    assert "taken branches than the plain build; noise: 0.0% more user time (1.000, 1.0" in lines[0]
    assert lines[2] == "Ship app."


def test_times_that_are_too_short_decide_nothing_and_that_is_said() -> None:
    lines = said((1000, 500, 0.002), (900, 300, 0.003), (990, 490, 0.001))
    assert "; too short to tell: 50.0% more user time" in lines[0]
    assert lines[1] == "Times of 2.0 ms are too short to tell: counts decide."
    assert "Ship app." in lines


def test_a_build_that_is_surely_slower_is_not_better() -> None:
    lines = said((1000, 500, 2.0), (900, 300, 2.2))
    assert lines[0].startswith("Verdict: no build is better for speed than the plain one")
    assert lines[1].startswith("  app needs 10.0% fewer instructions")
    assert lines[3] == "Ship w/app.before."
    assert not any("profile-sample-use" in line for line in lines)


def test_counts_that_chance_may_have_made_differ_are_noise() -> None:
    plain, other = (measured(*row) for row in ((BUILDS[0], 1000, 500), (BUILDS[1], 960, 300)))
    again = CountedRun(Totals(1004, 500, 0, 0), 0, "b")
    first, *_ = verdict(BUILDS[:2], [replace(plain, again=again), other], options())
    assert "app needs 40.0% fewer taken branches than the plain build; " in first
    assert "noise: 4.0% fewer instructions" in first


def test_of_a_program_that_does_other_work_each_time_no_build_is_better() -> None:
    plain, other = (measured(*row) for row in ((BUILDS[0], 1000, 500), (BUILDS[1], 160, 80)))
    again = CountedRun(Totals(1530, 760, 0, 0), 0, "a")
    lines = list(verdict(BUILDS[:2], [replace(plain, again=again), other], options()))
    assert lines[0].startswith("Verdict: no build is better for speed than the plain one")
    assert "noise: 84.0% fewer instructions, 84.0% fewer taken branches" in lines[1]


def simulated(build: Built, taken: int, l1i: int, code: int) -> Measured:
    counts = FrontEndCounts(PRESETS["skylake"], 1000, taken, l1i, *[0] * 7)
    run = CountedRun(Totals(1000, taken, 0, 0), 0, "a", counts)
    return Measured(str(build.path), run, np.empty(0), CodeSize(code, 1))


def test_without_times_cycles_of_the_model_decide() -> None:
    # By taken branches alone the last one would be best, but it misses more.
    costs = ((500, 0, 1000), (400, 0, 1000), (100, 20, 1000))
    rows = [simulated(build, *cost) for build, cost in zip(BUILDS, costs, strict=True)]
    assert "Ship app." in verdict(BUILDS, rows, options())


@pytest.mark.parametrize(
    ("goal", "shipped"), [("speed", "app.bolt"), ("balanced", "app"), ("size", "w/app.before")]
)
def test_a_goal_weighs_the_size_of_the_code(goal: str, shipped: str) -> None:
    costs = ((500, 0, 1000), (300, 0, 1100), (290, 0, 2000))
    rows = [simulated(build, *cost) for build, cost in zip(BUILDS, costs, strict=True)]
    found = verdict(BUILDS, rows, replace(options(), goal=GOALS[goal]))
    assert f"Ship {shipped}." in found


@pytest.mark.parametrize(("seconds", "shipped"), [(1.5, "app"), (2.2, "w/app.before")])
def test_for_another_goal_time_that_is_certain_counts_too(seconds: float, shipped: str) -> None:
    rows = [measured(BUILDS[0], 1000, 500, 2.0), measured(BUILDS[1], 1000, 500, seconds)]
    found = verdict(BUILDS[:2], rows, replace(options(), goal=GOALS["balanced"]))
    assert f"Ship {shipped}." in found


@pytest.mark.parametrize(
    ("measure", "line"),
    [
        ("./app 2", "Measured on: ./app 2"),
        ("./app 1", "WARNING: measured on what it was trained with (./app 1), which flatters"),
        (None, "WARNING: measured on what it was trained with (./app 1), which flatters"),
    ],
)
def test_it_says_on_what_it_was_measured(measure: str | None, line: str) -> None:
    rows = [measured(build, 1000, 500) for build in BUILDS]
    assert any(each.startswith(line) for each in verdict(BUILDS, rows, options(measure)))


def test_counts_that_hardly_change_are_no_gain() -> None:
    assert "no build is better" in said((1000, 500), (999, 499))[0]
    assert "no build is better" in said((1000, 500), (1200, 480))[0]


def test_a_build_that_does_something_else_is_not_shipped() -> None:
    lines = said((1000, 500), (900, 300), (800, 100), outputs="aab")
    assert "  app.bolt writes another output than the plain build: look into that first." in lines
    assert "Ship app." in lines


def test_what_was_not_measured_is_said() -> None:
    lines = list(verdict(BUILDS, [], options()))
    assert lines[:2] == ["Verdict: not measured. The last build is app.bolt.", "Ship app.bolt."]


def test_a_build_for_its_start_is_shipped_unless_something_speaks_against_it() -> None:
    ordered = Built(Path("app"), ("Its start touches 2 pages.",), (PROFILE, Path("w/app.startup")))
    builds = (BUILDS[0], Built(Path("w/app.after"), REBUILT, (PROFILE,)), ordered)

    def told(*seconds: float, outputs: str = "aaa") -> list[str]:
        rows = [
            measured(build, 100, 10, each, output)
            for build, each, output in zip(builds, seconds, outputs, strict=True)
        ]
        return [*verdict(builds, rows, replace(options(), startup=True))]

    for lines in (told(0, 0, 0), told(1.0, 0.9, 1.0), told(1.0, 1.0, 0.9)):
        assert "Ship app." in lines
        assert lines[lines.index("Ship app.") + 1] == "Its start touches 2 pages."
        assert "Keep w/app.startup: every build reads it." in lines
    assert "Ship app." not in told(1.0, 1.0, 1.2)
    assert "Ship app." not in told(0, 0, 0, outputs="aab")
