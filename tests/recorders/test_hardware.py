from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders.fixtures import Tool

from lbr2pgo.recorders.hardware import build_commands, choose_recorder, exit_code, record_hardware
from lbr2pgo.recorders.machine import Machine
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.support.errors import InputError, MissingToolError

Make = Callable[..., Machine]
Options = Callable[..., RecordOptions]
Pmus = Mapping[str, Any]


def first(machine: Machine, options: RecordOptions) -> str:
    return " ".join(build_commands(machine, options)[0])


def test_intel(make_machine: Make, make_options: Options, pmus: Pmus) -> None:
    machine = make_machine("skylake", pmus["lbr32"])
    commands = build_commands(machine, make_options(period=100003, output=Path("o ut.data")))
    assert commands[0] == (
        "perf", "record", "-e", "br_inst_retired.near_taken:uppp", "-c", "100003", "-b",
        "-o", "o ut.data", "--", "./program", "-x", "a b",
    )  # fmt: skip
    assert [c[3] for c in commands[1:]] == [
        "cpu/event=0xc4,umask=0x20,name=br_inst_retired.near_taken/uppp",
        "cycles:u",
    ]


def test_zen3_has_one_event_and_a_least_period(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    machine = make_machine("zen3", pmus["brs16"])
    commands = build_commands(machine, make_options(period=17))
    assert [" ".join(c[2:7]) for c in commands] == ["-e cpu/branch-brs/u -c 17 -b"]
    with pytest.raises(InputError, match="refuses a period of 16"):
        build_commands(machine, make_options(period=16))


@pytest.mark.parametrize(
    ("filters", "expected", "mode"),
    [
        (("any",), "-j any,u", ":uppp"),
        (("cond", "any_call"), "-j cond,any_call,u", ":uppp"),
        (("k",), "-j any,k", ":kppp"),
        (("u", "k", "ind_jmp"), "-j u,k,ind_jmp", ":ukppp"),
        (("save_type", "priv"), "-j any,save_type,priv,u", ":uppp"),
        (("any", "any"), "-j any,u", ":uppp"),
        (("any", "hv"), "-j any,hv", ":hppp"),
    ],
)
def test_filters(
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    filters: tuple[str, ...],
    expected: str,
    mode: str,
) -> None:
    machine = make_machine("skylake", pmus["lbr32"], paranoid="1")
    command = first(machine, make_options(filters=filters))
    assert f"{expected} -o" in command
    assert f"near_taken{mode} " in command


def test_call_stack(make_machine: Make, make_options: Options, pmus: Pmus) -> None:
    command = first(make_machine("skylake", pmus["lbr32"]), make_options(call_stack=True))
    assert "--call-graph lbr -o" in command
    assert " -b " not in command


@pytest.mark.parametrize(("filters", "ring"), [((), "-b"), (("cond",), "-j cond,u")])
def test_call_chains_stand_beside_branches(
    make_machine: Make, make_options: Options, pmus: Pmus, filters: tuple[str, ...], ring: str
) -> None:
    options = make_options(call_graph=True, filters=filters)
    command = first(make_machine("skylake", pmus["lbr32"]), options)
    assert f"{ring} --call-graph fp -o" in command


@pytest.mark.parametrize(
    ("cpu", "pmu", "changes", "reason"),
    [
        ("skylake", "lbr32", {"emulate": True}, "asked for"),
        ("skylake", "lbr32", {"exact": Path("x.npz")}, "exact counts"),
        ("skylake", "lbr32", {"depth": 64}, "always keeps 32 entries here, not 64"),
        ("skylake", "lbr32", {"depth": 8}, "always keeps 32 entries here, not 8"),
        ("skylake", "lbr32", {"filters": ("counter",)}, "no filter counter"),
        ("zen4", "amd16", {"call_stack": True}, "no call-stack mode"),
        ("zen4", "amd16", {"filters": ("any", "in_tx")}, "no filter in_tx"),
        ("zen3", "brs16", {"filters": ("cond", "u")}, "no filter cond"),
        ("neoverse-v3", "brbe64", {"call_stack": True}, "no call-stack mode"),
        ("zen2", "none", {}, "before Zen 3"),
        ("skylake", "lbr32", {"filters": ("any", "k")}, "perf_event_paranoid is 2: user code"),
    ],
)
def test_what_the_hardware_cannot_do_goes_to_the_software_lbr(
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    cpu: str,
    pmu: str,
    changes: dict[str, Any],
    reason: str,
) -> None:
    choice = choose_recorder(make_machine(cpu, pmus[pmu]), make_options(**changes))
    assert not choice.hardware
    assert reason in choice.reason


@pytest.mark.parametrize("changes", [{}, {"depth": 32}, {"filters": ("any_ret",)}])
def test_hardware_is_chosen_where_it_can(
    make_machine: Make, make_options: Options, pmus: Pmus, changes: dict[str, Any]
) -> None:
    choice = choose_recorder(make_machine("skylake", pmus["lbr32"]), make_options(**changes))
    assert choice.hardware
    assert "Intel LBR" in choice.reason


@pytest.mark.parametrize(("number", "hardware"), [(62, True), (183, False), (258, True)])
def test_programs_for_another_processor_are_emulated(
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    tmp_path: Path,
    number: int,
    hardware: bool,
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\2\1\1" + bytes(11) + number.to_bytes(2, "little"))
    program.chmod(0o755)
    options = make_options(command=(str(program),))
    choice = choose_recorder(make_machine("skylake", pmus["lbr32"]), options)
    assert choice.hardware is hardware
    assert hardware or "the program is for aarch64" in choice.reason


def test_commands_for_a_machine_without_branches_are_refused(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    with pytest.raises(MissingToolError, match="before Zen 3") as caught:
        build_commands(make_machine("zen2", pmus["none"]), make_options())
    assert "--emulate" in (caught.value.cure or "")


@pytest.mark.parametrize("changes", [{}, {"frequency": 99}, {"command": (), "pids": (3,)}])
def test_one_who_settles_for_less_takes_samples_of_instructions_before_the_software_lbr(
    make_machine: Make, make_options: Options, pmus: Pmus, changes: dict[str, Any]
) -> None:
    machine, options = make_machine("zen2", pmus["none"]), make_options(**changes)
    choice = choose_recorder(machine, options, settles=True)
    assert choice.hardware
    assert not choice.branches
    assert "before Zen 3" in choice.reason
    command = first(machine, replace(options, no_lbr=True))
    assert command.startswith("perf record -e instructions:u")
    assert " -b " not in command


@pytest.mark.parametrize(
    ("pmu", "machine", "changes"),
    [
        ("none", {}, {"filters": ("cond",)}),
        ("none", {}, {"depth": 16}),
        ("none", {}, {"call_graph": True}),
        ("none", {}, {"emulate": True}),
        ("none", {}, {"exact": Path("x.npz")}),
        ("empty", {}, {}),
        ("none", {"perf": None}, {}),
        ("none", {"paranoid": "3"}, {}),
    ],
)
def test_what_samples_of_instructions_cannot_do_goes_to_the_software_lbr(
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    pmu: str,
    machine: dict[str, Any],
    changes: dict[str, Any],
) -> None:
    chosen = make_machine("zen2", pmus[pmu], **machine)
    assert not choose_recorder(chosen, make_options(**changes), settles=True).hardware


def test_branches_come_before_samples_of_instructions(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    machine = make_machine("skylake", pmus["lbr32"])
    assert choose_recorder(machine, make_options(), settles=True).branches
    assert not choose_recorder(machine, make_options(no_lbr=True)).branches


def test_samples_of_instructions_that_cannot_be_had_are_refused(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    for call in (choose_recorder, build_commands):
        with pytest.raises(MissingToolError, match="no performance counters"):
            call(make_machine("zen2", pmus["empty"]), make_options(no_lbr=True))


ATTACHED: dict[str, tuple[dict[str, Any], str]] = {
    "processes": ({"pids": (3, 4)}, "-o perf.data -p 3,4"),
    "processes for a while": ({"pids": (3,), "duration": 2.5}, "-p 3 -- sleep 2.5"),
    "everything": ({"all_cpus": True}, "-o perf.data -a"),
    "everything, later": (
        {"all_cpus": True, "duration": 5, "delay": 0.25}, "-D 250 -o perf.data -a -- sleep 5.25",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ATTACHED)
def test_what_runs_already_is_recorded_without_a_command(
    make_machine: Make, make_options: Options, pmus: Pmus, case: str
) -> None:
    changes, expected = ATTACHED[case]
    machine = make_machine("skylake", pmus["lbr32"], paranoid="-1")
    options = make_options(command=(), **changes)
    assert choose_recorder(machine, options).hardware
    assert first(machine, options).endswith(expected)


def test_a_frequency_takes_the_place_of_the_period(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    command = first(make_machine("skylake", pmus["lbr32"]), make_options(frequency=997))
    assert " -F 997 -b " in command
    assert " -c " not in command


def test_brs_has_no_frequency(make_machine: Make, make_options: Options, pmus: Pmus) -> None:
    with pytest.raises(MissingToolError, match="no samples by frequency"):
        build_commands(make_machine("zen3", pmus["brs16"]), make_options(frequency=997))


def test_only_the_privileged_record_all_processors(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    machine = make_machine("skylake", pmus["lbr32"], paranoid="1")
    with pytest.raises(InputError, match="only privileged users record with -a"):
        choose_recorder(machine, make_options(command=(), all_cpus=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"pids": (os.getpid(),), "duration": 0.01, "frequency": 99},
        {"all_cpus": True, "duration": 0.01, "delay": 0.001},
        {"command": ("true",), "frequency": 99, "delay": 0.001},
        {"command": ("true",), "no_lbr": True},
    ],
    ids=["processes", "everything", "a command", "instructions"],
)
def test_perf_itself_understands_the_command(
    tool: Tool,
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    tmp_path: Path,
    changes: dict[str, Any],
) -> None:
    """On a software event, which has no branches: this needs no branch recorder."""
    tool("perf")
    output = tmp_path / "perf.data"
    options = make_options(**{"command": (), "output": output, **changes})
    machine = make_machine("goldmont", pmus["lbr32"], paranoid="-1")
    words = first(machine, options).split()
    words[3] = "cpu-clock:u"
    words = [word for word in words if word != "-b"]
    done = subprocess.run(words, capture_output=True, text=True)
    if "not permitted" in done.stderr or "No permission" in done.stderr:
        pytest.skip(f"perf can't record here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert output.exists()


class FakePerf:
    """Accepts commands whose event is named, and remembers them."""

    def __init__(self, accepts: str, returncode: int = 0) -> None:
        self.accepts, self.returncode = accepts, returncode
        self.trials: list[tuple[str, ...]] = []
        self.recorded: list[tuple[str, ...]] = []

    def trial(self, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        self.trials.append(command)
        accepted = self.accepts in command[3]
        stderr = "" if accepted else f"Error:\nno such event: {command[3]}\nRun perf list"
        return subprocess.CompletedProcess(command, 0 if accepted else 129, "", stderr)

    def record(self, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        self.recorded.append(command)
        return subprocess.CompletedProcess(command, self.returncode, "", "")


def test_the_first_accepted_command_records(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    perf = FakePerf("event=0xc4", returncode=7)
    machine, options = make_machine("zen4", pmus["amd16"]), make_options()
    assert record_hardware(machine, options, trial=perf.trial, record=perf.record) == 7
    assert perf.recorded == [build_commands(machine, options)[1]]
    assert len(perf.trials) == 2
    assert all(command[-1] == "true" for command in perf.trials)
    assert all("perf.data" not in command for command in perf.trials)


def test_an_attachment_is_tried_for_a_moment_and_ends_well_when_interrupted(
    make_machine: Make, make_options: Options, pmus: Pmus
) -> None:
    perf = FakePerf("near_taken", returncode=-signal.SIGINT)
    machine = make_machine("skylake", pmus["lbr32"])
    options = make_options(command=(), pids=(3,), delay=9)
    assert record_hardware(machine, options, trial=perf.trial, record=perf.record) == 0
    assert " ".join(perf.trials[0]).endswith("-p 3 -- sleep 0.01")
    assert "-D" not in perf.trials[0]


def test_what_is_watched_is_told_how_much_was_recorded(
    make_machine: Make, make_options: Options, pmus: Pmus, tmp_path: Path
) -> None:
    told: list[str] = []

    @contextmanager
    def watch(so_far: Callable[[], str]) -> Iterator[None]:
        told.append(so_far())
        yield
        output.write_bytes(bytes(2_340_000))
        told.append(so_far())

    output = tmp_path / "out.data"
    perf = FakePerf("near_taken")
    machine = make_machine("skylake", pmus["lbr32"])
    record_hardware(
        machine, make_options(output=output), trial=perf.trial, record=perf.record, watch=watch
    )
    assert told == ["recording", "2.3 MB recorded"]


def test_perf_that_accepts_nothing(make_machine: Make, make_options: Options, pmus: Pmus) -> None:
    perf = FakePerf("nothing")
    machine = make_machine("zen4", pmus["amd16"])
    with pytest.raises(MissingToolError, match="no such event: cycles:u") as caught:
        record_hardware(machine, make_options(), trial=perf.trial, record=perf.record)
    assert "doctor" in (caught.value.cure or "")
    assert perf.recorded == []


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_perf_passes_the_programs_end_through(
    tool: Tool, tmp_path: Path, script: str, code: int
) -> None:
    """Perf itself, on a software event: this needs no branch recorder."""
    tool("perf")
    output = tmp_path / "perf.data"
    done = subprocess.run(
        ["perf", "record", "-e", "cpu-clock:u", "-o", str(output), "--", "sh", "-c", script],
        capture_output=True,
        text=True,
    )
    if not output.exists():
        pytest.skip(f"perf can't record here: {done.stderr.strip()}")
    assert exit_code(done.returncode) == code


def test_perf_as_a_program(
    make_machine: Make,
    make_options: Options,
    pmus: Pmus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The default runners find perf in PATH and keep the program's exit code."""
    perf = tmp_path / "perf"
    perf.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n[ "$3" = cycles:u ] || exit 129\nexit 0'
    )
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert record_hardware(make_machine("zen4", pmus["amd16"]), make_options()) == 0
    assert len((tmp_path / "log").read_text().splitlines()) == 4


def test_perf_finishes_its_file_after_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole group; the recorder waits for perf, as a shell does."""
    perf = (
        "trap 'sleep 0.5; echo whole > perf.data; exit 3' INT; echo up; while :; do sleep 0.1; done"
    )
    script = (
        "from lbr2pgo.recorders import hardware\n"
        f"raise SystemExit(hardware._run_foreground(('sh', '-c', {perf!r})).returncode)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=20) == 3
    assert (tmp_path / "perf.data").read_text() == "whole\n"


def test_exit_codes() -> None:
    assert exit_code(0) == 0
    assert exit_code(255) == 255
    assert exit_code(-signal.SIGSEGV) == 139
