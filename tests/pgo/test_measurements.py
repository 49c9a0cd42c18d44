"""What is said of costs that were made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.measure import CountedRun, Measured
from lbr2pgo.pgo.measurements import measured_notes
from lbr2pgo.pgo.perf_counters import EventCount

RUN = CountedRun(Totals(10_000_000, 1_000_000, 10, 1), 0, "a")
IT = Measured("it", RUN, np.empty(0), again=RUN)


def notes(first: Measured, *others: Measured) -> list[str]:
    return list(measured_notes([first, *others]))


def test_of_programs_that_do_the_same_each_time_there_is_nothing_to_say() -> None:
    assert notes(IT, replace(IT, name="other", again=None)) == []


def test_another_output_is_noted_unless_the_program_s_own_changes() -> None:
    other = Measured("other", replace(RUN, output="b"), np.empty(0))
    assert notes(IT, other) == ["other writes another output than it"]
    unsteady = replace(IT, again=replace(RUN, output="c"))
    assert notes(unsteady, other) == [
        "it writes something else each time, so outputs are not compared"
    ]


def test_counts_that_differ_from_run_to_run_are_noted() -> None:
    again = replace(RUN, totals=Totals(10_000_000, 1_030_000, 10, 1))
    assert notes(replace(IT, again=again)) == [
        "it does not repeat itself: counts of two runs differ by 3.0% (time, deadlines, random "
        "numbers, threads?), so chance may make any differ by 38%: give it fixed work (a number of "
        "rounds in place of a time, a seed)"
    ]


def test_an_exit_code_is_noted() -> None:
    failed = replace(RUN, exit_code=3)
    (note,) = notes(replace(IT, counted=failed, again=failed))
    assert note == (
        "every run ended with exit code 3: does it want arguments, input (lbr2pgo … < FILE) or a "
        "terminal (script -qec 'CMD' /dev/null)?"
    )


def test_a_run_that_does_nothing_is_noted() -> None:
    idle = replace(RUN, totals=Totals(104_760, 9_000, 10, 1))
    (note,) = notes(replace(IT, counted=idle, again=idle))
    assert note.startswith("it ran only 104,760 instructions, hardly more than a start: does it")


@pytest.mark.parametrize(("by", "is_noise"), [(0.02, False), (0.08, True)])
def test_a_time_that_is_noise_is_called_that(by: float, is_noise: bool) -> None:
    first = replace(IT, seconds=np.full(10, 1.0))
    other = Measured("other", RUN, np.linspace(1 - by, 1 + by, 10))
    said = [note for note in notes(first, other) if "noise" in note]
    assert bool(said) is is_noise
    assert all(note.endswith("judge by counts, or by cycles of a model (--model)") for note in said)


def test_counts_that_differ_from_run_to_run_are_no_cure_for_noise() -> None:
    again = replace(RUN, totals=Totals(10_000_000, 1_030_000, 10, 1))
    first = replace(IT, seconds=np.full(10, 1.0), again=again)
    other = Measured("other", RUN, np.linspace(0.9, 1.1, 10))
    *_, note = notes(first, other)
    assert note == (
        "the time of other is noise (0.92 to 1.08 of the first's): counts are no better, since "
        "these differ from run to run"
    )


@pytest.mark.parametrize(
    ("seconds", "note"),
    [
        ([0.002] * 6, "it takes 2.0 ms, too short to tell: let one run repeat its work"),
        (
            [0.2, 0.21, 0.2, 0.19, 0.2, 1.5, 0.21],
            "1 of 7 times of it are far off the others: was the machine busy?",
        ),
    ],
)
def test_times_that_tell_little_are_noted(seconds: list[float], note: str) -> None:
    assert notes(replace(IT, seconds=np.array(seconds))) == [note]


def test_counters_that_took_turns_are_noted() -> None:
    runs = [{"cycles": EventCount(100, share)} for share in (1.0, 0.62)]
    assert notes(replace(IT, events=runs)) == [
        "hardware counters took turns: an event was counted in 62% of a run, and the rest is "
        "extrapolated"
    ]
    cut_off = [{"cycles": EventCount(100, 0.99)}]  # 99 % on one kind of cores, 0 % on the other
    assert notes(replace(IT, events=cut_off)) == []


def test_that_hardware_counts_nothing_is_noted_with_the_reason() -> None:
    barred = replace(IT, uncounted="perf is not installed")
    assert notes(barred, replace(barred, name="other")) == [
        "hardware counts nothing here: perf is not installed"
    ]
