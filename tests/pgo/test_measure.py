from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.pgo.measure import (
    CONFIDENCE,
    FEWEST_RUNS,
    Candidate,
    differing_outputs,
    measure,
    median_interval,
)
from lbr2pgo.support.errors import InputError

TESTBINS = Path(__file__).parents[2] / "testbins"
INTERP = TESTBINS / "x86-64" / "interp.static"
FOREIGN = TESTBINS / "aarch64" / "interp.static"


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Candidate]:
    """`script("a", "exit 3")`: a program that a shell runs."""

    def make(name: str, text: str) -> Candidate:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return Candidate(name, (str(path),))

    return make


def interp(program: Path, rounds: int) -> Candidate:
    return Candidate(program.name, (str(program), str(rounds)))


def test_equal_programs_cost_exactly_the_same_and_more_work_costs_more(tmp_path: Path) -> None:
    copy = shutil.copy2(INTERP, tmp_path / INTERP.name)
    once, again, twice = measure(
        [interp(INTERP, 1), Candidate("copy", (str(copy), "1")), interp(INTERP, 2)], runs=0
    )
    # The length of its own path is all that a program can tell them apart by.
    assert abs(once.counted.totals.instructions - again.counted.totals.instructions) < 1000
    assert once.counted.totals.taken > 100_000
    ratios = twice.count_ratios(once)
    assert ratios.keys() == {"instructions", "taken", "mispredicted"}
    assert all(ratio is not None and 1.5 < ratio < 2.5 for ratio in ratios.values())
    assert differing_outputs([once, again, twice]) == ["interp.static"]
    assert once.time_ratio(once) is None


def test_counts_are_repeatable() -> None:
    runs = [measure([interp(INTERP, 1)], runs=0)[0].counted for _ in range(2)]
    assert runs[0] == runs[1]


def test_programs_take_turns_and_another_begins_each_round(
    tmp_path: Path, script: Callable[..., Candidate]
) -> None:
    log = tmp_path / "log"
    programs = [script(name, f"echo {name} >> {log}") for name in "abc"]
    measured = measure(programs, runs=FEWEST_RUNS)
    assert [each.seconds.shape for each in measured] == [(FEWEST_RUNS,)] * 3
    assert all((each.seconds > 0).all() for each in measured)
    order = log.read_text().replace("\n", "")
    counted, timed = order[:3], order[3:]
    assert (counted, timed) == ("abc", "abcbcacab" * (FEWEST_RUNS // 3))


def test_a_slower_program_is_outside_the_interval_of_equal_ones(
    script: Callable[..., Candidate],
) -> None:
    base, slow = measure([script("base", ":"), script("slow", "sleep 0.05")], runs=FEWEST_RUNS)
    ratio = slow.time_ratio(base)
    assert ratio is not None
    assert 1 < ratio.low <= ratio.median <= ratio.high
    own = base.time_ratio(base)
    assert own is not None
    assert (own.low, own.median, own.high) == (1, 1, 1)


def test_programs_that_exit_differently_are_refused_with_both_codes(
    script: Callable[..., Candidate],
) -> None:
    with pytest.raises(InputError, match="good with 0, bad with 3"):
        measure([script("good", ":"), script("bad", "exit 3")], runs=0)


def test_a_program_that_exits_otherwise_under_emulation_is_refused(
    tmp_path: Path, script: Callable[..., Candidate]
) -> None:
    once = script("once", f"mkdir {tmp_path / 'there'} 2>&1")
    with pytest.raises(InputError, match="once emulated with 0, run natively with 1"):
        measure([once], runs=FEWEST_RUNS)


def test_input_is_empty_and_output_dropped(
    script: Callable[..., Candidate], capfd: pytest.CaptureFixture[str]
) -> None:
    measured = measure([script("reads", "cat; echo read")], runs=FEWEST_RUNS)
    assert measured[0].counted.exit_code == 0
    assert capfd.readouterr().out == ""


def test_a_program_for_another_processor_is_counted_and_not_timed(
    tool: Callable[[str], str],
) -> None:
    tool("qemu-aarch64")
    (measured,) = measure([interp(FOREIGN, 1)], runs=FEWEST_RUNS)
    assert measured.counted.totals.taken > 100_000
    assert len(measured.seconds) == 0


def test_too_few_runs_are_refused_before_anything_runs(script: Callable[..., Candidate]) -> None:
    with pytest.raises(InputError, match="5 runs can't give a 95% confidence interval"):
        measure([script("never", "exit 9")], runs=5)


def test_the_interval_is_as_wide_as_six_values_need() -> None:
    interval = median_interval(np.array([5.0, 1.0, 4.0, 2.0, 6.0, 3.0]))
    assert (interval.low, interval.median, interval.high) == (1.0, 3.5, 6.0)
    with pytest.raises(ValueError, match="5 values"):
        median_interval(np.arange(5.0))


@pytest.mark.parametrize("rounds", [6, 9, 15, 40])
def test_the_interval_covers_the_true_median_as_often_as_it_says(rounds: int) -> None:
    # A skewed distribution with a long tail, as times are.
    random = np.random.default_rng(rounds)
    draws = random.exponential(size=(4000, rounds))
    found = [median_interval(row) for row in draws]
    covered = np.mean([each.low <= np.log(2) <= each.high for each in found])
    assert CONFIDENCE - 0.01 <= covered <= 0.99


def test_a_file_is_back_in_its_place_after_an_interrupt(
    tmp_path: Path, tool: Callable[[str], str]
) -> None:
    """Under emulation the interrupt is the program's own; the timed run's is ours."""
    tool("qemu-x86_64")
    place, build = tmp_path / "library", tmp_path / "build"
    place.write_text("installed")
    build.write_text("another")
    seen = tmp_path / "seen"
    script = f"cat {place} >> {seen}; kill -INT $PPID"
    candidate = Candidate("it", ("/bin/sh", "-c", script), (build, place))
    with pytest.raises(KeyboardInterrupt):
        measure([candidate], 6)
    assert seen.read_text() == "another" * 2
    assert place.read_text() == "installed"
