from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lbr2pgo.pgo import measure as module
from lbr2pgo.pgo.measure import Candidate, differing_outputs, measure
from lbr2pgo.pgo.timing import FEWEST_RUNS, NOT_TIMED, Interval, Rounds
from lbr2pgo.recorders.front_end import preset
from lbr2pgo.support.errors import InputError

TESTBINS = Path(__file__).parents[2] / "testbins"
INTERP = TESTBINS / "x86-64" / "interp.static"
FOREIGN = TESTBINS / "aarch64" / "interp.static"
SIX = Rounds(FEWEST_RUNS)


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
        [interp(INTERP, 1), Candidate("copy", (str(copy), "1")), interp(INTERP, 2)], NOT_TIMED
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
    runs = [measure([interp(INTERP, 1)], NOT_TIMED)[0].counted for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_front_end_changes_no_count_and_is_simulated_once() -> None:
    """It takes twice as long again as counting alone."""
    (measured,) = measure([interp(INTERP, 1)], NOT_TIMED, front_end=preset("skylake"))
    assert measured.again is not None
    assert measured.counted.front_end is not None
    assert measured.again == replace(measured.counted, front_end=None)


def test_the_first_is_counted_twice_and_all_warm_up_and_take_turns_in_random_order(
    tmp_path: Path, script: Callable[..., Candidate]
) -> None:
    log = tmp_path / "log"
    programs = [script(name, f"echo {name} >> {log}") for name in "abc"]
    measured = measure(programs, SIX)
    assert [each.seconds.shape for each in measured] == [(FEWEST_RUNS,)] * 3
    order = log.read_text().replace("\n", "")
    counted, warm, timed = order[:4], order[4:7], order[7:]
    assert (counted, warm) == ("abca", "abc")
    rounds = [timed[at : at + 3] for at in range(0, len(timed), 3)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    assert len(rounds) == FEWEST_RUNS
    assert len({each[0] for each in rounds}) > 1


def test_user_time_is_that_of_all_that_a_program_starts(script: Callable[..., Candidate]) -> None:
    base, slow = measure(
        [script("base", f"{INTERP} 2"), script("slow", f"({INTERP} 300; true)")], SIX
    )
    ratio = slow.time_ratio(base)
    assert ratio is not None
    assert 1 < ratio.low <= ratio.median <= ratio.high
    assert slow.time_chance(base) == 2 / 2**FEWEST_RUNS
    own = base.time_ratio(base)
    assert own is not None
    assert (own.low, own.median, own.high) == (1, 1, 1)


def test_a_program_that_does_not_repeat_itself_is_noticed(script: Callable[..., Candidate]) -> None:
    uuid = "read -r id < /proc/sys/kernel/random/uuid; echo $id"
    unsteady = f"{uuid}; i=0; while [ $i -lt $((0x${{id%%-*}} % 3000)) ]; do i=$((i+1)); done"
    measured = measure([script("it", unsteady), script("other", "echo other")], NOT_TIMED)
    assert differing_outputs(measured) == []
    assert measured[0].spread["instructions"] > 0.001
    assert not measured[0].repeats_output


def test_all_runs_read_the_same_input(tmp_path: Path, script: Callable[..., Candidate]) -> None:
    (tmp_path / "in").write_text("one\ntwo\n")
    text = f"[ $(cat | tee -a {tmp_path}/seen | wc -l) = 2 ]"
    given = replace(script("reads", text), input=tmp_path / "in")
    (measured,) = measure([given], SIX)
    assert measured.counted.exit_code == 0
    assert (tmp_path / "seen").read_text() == "one\ntwo\n" * (2 + 1 + FEWEST_RUNS)


def test_what_hardware_counts_is_compared_turn_by_turn(
    monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]
) -> None:
    tool("perf")
    monkeypatch.setattr(module, "EVENTS", (("page-faults",), ("no-such-event",)))
    once, same = measure([interp(INTERP, 1), replace(interp(INTERP, 1), name="same")], SIX)
    assert [each.keys() for each in once.events] == [{"page-faults"}] * FEWEST_RUNS
    ratio = same.event_ratios(once)["page-faults"]
    assert ratio.median == pytest.approx(1, rel=0.2)
    assert once.event_ratios(once)["page-faults"] == Interval(1, 1, 1)


def test_programs_that_exit_differently_are_refused_with_both_codes(
    script: Callable[..., Candidate],
) -> None:
    with pytest.raises(InputError, match="good with 0, bad with 3"):
        measure([script("good", ":"), script("bad", "exit 3")], NOT_TIMED)


def test_a_program_that_exits_otherwise_under_emulation_is_refused(
    tmp_path: Path, script: Callable[..., Candidate]
) -> None:
    late = script("late", f"echo >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -le 2 ]")
    with pytest.raises(InputError, match="late emulated with 0, run natively with 1"):
        measure([late], SIX)


def test_a_program_that_exits_otherwise_the_second_time_is_refused(
    tmp_path: Path, script: Callable[..., Candidate]
) -> None:
    once = script("once", f"mkdir {tmp_path / 'there'} 2>&1")
    with pytest.raises(InputError, match="once with 0, once once more with 1"):
        measure([once], NOT_TIMED)


def test_input_is_empty_and_output_dropped(
    script: Callable[..., Candidate], capfd: pytest.CaptureFixture[str]
) -> None:
    measured = measure([script("reads", "cat; echo read")], SIX)
    assert measured[0].counted.exit_code == 0
    assert capfd.readouterr().out == ""


def test_a_program_for_another_processor_is_counted_and_not_timed(
    tool: Callable[[str], str],
) -> None:
    tool("qemu-aarch64")
    (measured,) = measure([interp(FOREIGN, 1)], SIX)
    assert measured.counted.totals.taken > 100_000
    assert len(measured.seconds) == 0


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
        measure([candidate], SIX)
    assert seen.read_text() == "another" * 3
    assert place.read_text() == "installed"


INTERP = Path(__file__).parents[2] / "testbins" / "x86-64" / "interp.static"
