"""`lbr2pgo measure` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.ticks import FOR_ANOTHER_TIME

from lbr2pgo.cli.measure import _time_cell
from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.measure import CountedRun, Measured

TESTBINS = Path(__file__).parents[2] / "testbins"
PIE, STATIC = TESTBINS / "x86-64" / "interp.pie", TESTBINS / "x86-64" / "interp.static"


@pytest.fixture(autouse=True)
def _emulator(tool):
    tool("qemu-x86_64")


def test_the_table_has_ratios_to_the_first_program(command):
    answer = command("measure", "--runs", "0", STATIC, PIE, "--", "1")
    assert answer.code == 0
    head, first, second = (line.split() for line in answer.out.splitlines()[:3])
    assert head[0] == "program"
    assert first[2:7:2] == ["(1.000)"] * 3
    assert first[0] == str(STATIC)
    assert second[0] == str(PIE)
    assert second[2] != "(1.000)"
    assert second[-2:] == ["not", "timed"]


def test_what_is_certain_is_said_of_each_program_but_the_first(command):
    answer = command("measure", "--runs", "0", STATIC, PIE, STATIC, "--", "1")
    more, same = answer.out.splitlines()[-2:]
    said = (
        rf"{PIE} needs 3[.]\d% more instructions and 2[.]\d% more taken branches than {STATIC}; "
        r"not timed; code of 0[.]\d\d times the size, 2 hot pages in place of 2[.]"
    )
    assert re.fullmatch(said, more)
    assert same == (
        f"{STATIC} needs the same as {STATIC}; not timed; code of 1.00 times the size, 2 hot pages "
        "in place of 2."
    )
    alone = command("measure", "--runs", "0", STATIC, "--", "1")
    assert len(alone.out.splitlines()) == 2


def test_a_program_that_adapts_to_time_is_to_be_given_fixed_work(command, tool, tmp_path):
    source, program = tmp_path / "ticks.c", tmp_path / "ticks"
    source.write_text(FOR_ANOTHER_TIME)
    subprocess.run([tool("cc"), "-O2", source, "-o", program], check=True)
    answer = command("measure", "--runs", "6", program, program)
    assert answer.code == 0
    assert "does not repeat itself: counts of two runs differ by" in answer.err
    assert "give it fixed work (a number of rounds in place of a time, a seed)" in answer.err
    assert "is noise (" in answer.err
    assert "counts are no better" in answer.err
    assert "judge by counts" not in answer.err


@pytest.mark.parametrize("columns", ["80", "100"])
def test_on_a_narrow_terminal_programs_stand_side_by_side(command, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    answer = command("measure", "--runs", "6", STATIC, PIE, STATIC, "--", "40")
    assert answer.code == 0
    head, *rows = answer.out.splitlines()[:-2]
    assert max(map(len, (head, *rows))) <= int(columns)
    names = (STATIC.name, PIE.name, STATIC.name)
    assert all(a.endswith(b[-4:]) for a, b in zip(head.split(), names, strict=True))
    for row, figure in zip(
        rows, ("instructions", "taken branches", "mispredictions"), strict=False
    ):
        assert row.startswith(figure)
        assert len(row.removeprefix(figure).split()) == 5  # two have a ratio
    assert rows[-1].count("p = ") == 2


def test_json_holds_counts_ratios_and_every_time(command):
    # Long enough for the clock of user time: in a run of one round it may stand still.
    answer = command("measure", "--runs", "6", "--format", "json", STATIC, PIE, "--", "40")
    found = json.loads(answer.out)
    assert (found["exit_code"], found["differing_outputs"]) == (0, [])
    first, second = found["programs"]
    assert first["ratios"] == {"instructions": 1, "taken": 1, "mispredicted": 1}
    for name, ratio in second["ratios"].items():
        assert ratio == second["counts"][name] / first["counts"][name]
    assert len(first["seconds"]) == len(second["seconds"]) == 6
    ratio = second["time_ratio"]
    assert ratio["low"] <= ratio["median"] <= ratio["high"]


@pytest.mark.parametrize(
    ("seconds", "cell"), [([], "not timed"), ([0.001] * 5 + [0.0], "too short")]
)
def test_a_clock_that_stood_still_is_no_lack_of_times(seconds, cell):
    measured = Measured("it", CountedRun(Totals(1, 1, 1, 1), 0, ""), np.array(seconds))
    assert _time_cell(measured, measured) == cell


def test_what_hardware_counts_is_a_table_of_medians_and_ratios(command, monkeypatch, tool):
    tool("perf")
    monkeypatch.setattr("lbr2pgo.pgo.measure.EVENTS", (("no-such-event", "page-faults"),))
    answer = command("measure", "--runs", "6", STATIC, PIE, "--", "1")
    head, row = answer.out.splitlines()[3:5]
    assert head.split() == ["counted", "by", "hardware", str(STATIC), str(PIE)]
    ratio = r"\d[.]\d{3} [(]\d[.]\d{3} to \d[.]\d{3}[)]"
    assert re.fullmatch(rf"page-faults +\d+ +{ratio}", row)
    assert "hardware counts nothing" not in answer.err


def test_json_has_what_hardware_counted_of_each_run(command, monkeypatch, tool):
    tool("perf")
    monkeypatch.setattr("lbr2pgo.pgo.measure.EVENTS", (("page-faults",), ("no-such-event",)))
    answer = command("measure", "--runs", "6", "--format", "json", STATIC, PIE, "--", "1")
    found = json.loads(answer.out)
    assert found["hardware_refusal"] is None
    for program in found["programs"]:
        assert [run.keys() for run in program["events"]] == [{"page-faults"}] * 6
        assert all(run["page-faults"]["value"] > 10 for run in program["events"])
        assert {run["page-faults"]["share"] for run in program["events"]} == {1}


def test_that_hardware_counts_nothing_is_said_once_with_the_reason(command, monkeypatch, tool):
    tool("perf")
    monkeypatch.setattr("lbr2pgo.pgo.measure.EVENTS", (("no-such-event",),))
    asked = ("measure", "--runs", "6", STATIC, PIE, "--", "1")
    answer = command(*asked)
    why = "perf says: event syntax error: 'no-such-event:u'"
    assert answer.err.count(f"note: hardware counts nothing here: {why}\n") == 1
    assert "counted by hardware" not in answer.out
    found = json.loads(command(*asked[:1], "--format", "json", *asked[1:]).out)
    assert found["hardware_refusal"] == why
    assert "hardware" not in command("measure", "--runs", "0", STATIC, "--", "1").err


def test_programs_with_another_output_are_named(command, tmp_path):
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho something else\n")
    other.chmod(0o755)
    answer = command("measure", "--runs", "0", STATIC, other, "--", "1")
    assert answer.code == 0
    assert answer.err == f"note: {other} writes another output than {STATIC}\n"


def test_a_model_alone_is_simulated_and_not_timed(command):
    answer = command("measure", "--model", "--", STATIC, "1")
    assert answer.code == 0
    _, counts, head, *rows = answer.out.splitlines()
    assert counts.endswith("not timed")
    assert head.split() == ["simulated:", "skylake", str(STATIC)]
    cycles = rows[0].split()[2].replace(",", "")
    assert rows[0].split()[:2] == ["cycles,", "estimated"]
    assert int(cycles) > int(counts.split()[1].replace(",", "")) / 4
    assert [row.split("  ")[0] for row in rows[1:4]] == [
        "L1I misses", "L2 misses (code)", "iTLB misses",
    ]  # fmt: skip


def test_a_program_behind_the_model_is_no_preset_and_json_has_its_counts(command):
    answer = command("measure", "--format", "json", "--runs", "0", "--model", STATIC, PIE, "--", 1)
    first, second = (each["front_end"] for each in json.loads(answer.out)["programs"])
    assert first["preset"] == second["preset"] == "skylake"
    assert first["cycles_ratio"] == 1
    assert second["cycles_ratio"] == second["cycles"] / first["cycles"]
    assert second["l1i"] > second["l2"] > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("measure",), "there is no program to measure"),
        (("measure", "--"), "there is no program to measure"),
        (("measure", "--", "1"), "there is no program 1"),
        (("measure", "--model", "zen9", STATIC), "there is no front end 'zen9'"),
        (("measure", "--runs", "3", STATIC), "3 runs can't give a 95% confidence interval"),
        (("measure", STATIC, "--runs"), "--runs is no program"),
        (("measure", "no-such-program"), "there is no program no-such-program"),
        (("measure", "--runs", "0", STATIC, "/bin/false", "--", "1"), "do not exit alike"),
    ],
)
def test_bad_input_is_said_in_a_line_or_two(command, words, complaint):
    answer = command(*words)
    assert answer.code == 2
    assert complaint in answer.err
    assert answer.out == ""


def test_verbose_tells_the_time_of_each_stage(command):
    answer = command("measure", "--runs", "0", "--verbose", STATIC, "--", "1")
    stages = [line.rpartition(".")[0] for line in answer.err.splitlines()]
    for name in (f"count {STATIC}", f"count {STATIC} once more", "time in turns", "all stages"):
        assert any(stage.startswith(name) for stage in stages)


@pytest.mark.parametrize("state", ["warm", "cold"])
def test_what_native_runs_have_in_memory_is_told_on_demand(command, state):
    asked = ("measure", "--runs", "0", "--memory", state)
    answer = command(*asked, STATIC, PIE, "--", "1")
    assert answer.code == 0
    head, *rows = answer.out.splitlines()[3:-1]
    assert head.split() == ["in", "memory", str(STATIC), str(PIE)]
    assert [row.split("  ")[0] for row in rows] == [
        "resident code (bytes)",
        "page faults",
        "from disk",
    ]
    answer = command(*asked, "--format", "json", STATIC, "--", "1")
    (found,) = json.loads(answer.out)["programs"]
    assert f"{found['memory']['resident_code']:,}" in rows[0]
