from __future__ import annotations

import os
import re
import shutil
import tempfile
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lbr2pgo.cli import main, record
from lbr2pgo.cli.parser import Parser
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.recorders.machine import Pmu, read_machine
from lbr2pgo.support.errors import InputError, MissingToolError

TESTBINS = Path(__file__).parents[2] / "testbins"


def run(*arguments: object) -> int:
    parser = Parser()
    record.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["record", *map(str, arguments)])
    return int(parsed.run(parsed))


@pytest.fixture(autouse=True)
def emulators(tool: Callable[[str], str]) -> None:
    tool("qemu-x86_64")
    tool("cc")


def test_a_dry_run_prints_the_command_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("-c", "499", "-j", "cond,u", "-j", "any_ret", "--depth", "16", "--no-cycles")
    assert run("--emulate", "--dry-run", "-o", tmp_path / "x", *arguments, "--", "true", "-c") == 0
    command = capsys.readouterr().out
    assert re.search(r"qemu-x86_64 .*-plugin .*/lbr-[0-9a-f]{16}\.so.*true -c\n$", command)
    for setting in ("period=499", "depth=16", "cycles=0", "callstack=0", "exact=0"):
        assert f",{setting}," in command
    assert not list(tmp_path.iterdir())


def test_a_program_is_found_as_binary_finds_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(TESTBINS / "x86-64" / "interp.static", tmp_path / "true")
    monkeypatch.chdir(tmp_path)
    assert run("--emulate", "--dry-run", "true") == 0
    assert capsys.readouterr().out.endswith(" ./true\n")
    Path("true").unlink()
    assert run("--emulate", "--dry-run", "true") == 0
    assert capsys.readouterr().out.endswith(f" {shutil.which('true')}\n")


def test_the_exit_code_is_passed_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "perf.data"
    assert run("--emulate", "-o", output, "sh", "-c", "echo out; exit 42") == 42
    captured = capfd.readouterr()
    assert captured.out == "out\n"
    facts = r"\([0-9.]+ kB, [0-9,]+ samples?\)"
    wrote = rf"wrote {output} {facts}: lbr2pgo convert {output} --llvm"
    assert re.search(wrote, captured.err)


def test_open_shows_the_page_of_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pages: list[str] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: pages.append(url) or True)
    words = ("--open", "--emulate", "-c", "499", "-o", tmp_path / "perf.data")
    program = TESTBINS / "x86-64" / "interp.pie"
    assert run(*words, "--", program) == 0
    page = Path(pages[-1].removeprefix("file://"))
    assert "interp.pie" in page.read_text()
    assert f"opened {page}" in capfd.readouterr().err


@pytest.mark.parametrize("words", [("--dry-run",), ("-o", "-"), ("--continuous",)])
def test_only_one_recording_in_a_file_is_opened(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="--open is for one recording"):
        run("--open", *words, "--", "true")


def test_where_nothing_was_recorded_no_file_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "perf.data"
    output.write_text("before")
    assert run("--emulate", "-c", "999999999", "-o", output, "true") == 0
    error = capfd.readouterr().err
    assert f"Nothing was recorded ({output} is as it was)" in error
    assert "-c" in error
    assert "wrote" not in error
    assert output.read_text() == "before"


def test_a_recording_goes_to_standard_output_and_the_programs_words_elsewhere(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert run("--emulate", "-c", "99", "-o", "-", "sh", "-c", "echo out") == 0
    captured = capfdbinary.readouterr()
    assert captured.out.startswith(b"PERFILE2")
    assert b"out\n" in captured.err


def test_duration_ends_a_program_that_would_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "perf.data"
    spin = ("sh", "-c", "while :; do :; done")
    assert run("--emulate", "-o", output, "--duration", "1", "--", *spin) == 0
    assert re.search(r", [1-9][0-9,]* samples\): ", capfd.readouterr().err)


def test_a_program_that_ends_before_its_duration_keeps_its_exit_code(tmp_path: Path) -> None:
    words = ("--duration", "60", "--", "sh", "-c", "exit 7")
    assert run("--emulate", "-o", tmp_path / "perf.data", *words) == 7


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("-p", "1"), "processes that run already (-p)"),
        (("-a",), "all that runs on the machine (-a)"),
        (("-F", "99", "--", "true"), "so many samples a second (-F)"),
        (("--delay", "3", "--", "true"), "the time behind a --delay"),
    ],
)
def test_the_emulator_says_what_it_cannot_record(words: tuple[str, ...], what: str) -> None:
    with pytest.raises(InputError) as caught:
        run("--emulate", *words)
    assert f"can't record {what}" in caught.value.what
    assert "the software LBR was asked for" in caught.value.what


def test_exact_counts_are_summed_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    exact = tmp_path / "exact.npz"
    program = TESTBINS / "x86-64" / "interp.static"
    assert run("-o", tmp_path / "p", "--exact", exact, "--", program, "1") == 0
    error = capfd.readouterr().err
    totals = ExactCounts.load(exact).totals
    assert "exact counts can only be had from the software LBR" in error
    assert f"wrote {exact} (" in error
    assert f"{totals.instructions:,} instructions" in error
    assert f"{totals.taken:,} taken branches" in error
    assert f"{totals.mispredicted:,} mispredictions (simulated)" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("-j", "nonsense", "true"),
        ("-c", "0", "true"),
        ("--depth", "7", "true"),
        ("--",),
        ("--", "/no/such/program"),
    ],
)
def test_senseless_requests(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run("--emulate", "-o", tmp_path / "x", *arguments)
    assert not list(tmp_path.iterdir())


def test_without_an_emulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = TESTBINS / "x86-64" / "interp.static"
    assert main(["record", "--emulate", "-o", str(tmp_path / "x"), "--", str(program)]) == 2
    error = capsys.readouterr().err
    assert "needs qemu-x86_64, and it is not installed" in error
    assert "apt-get install qemu-user" in error


def test_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qemu-x86_64").symlink_to(shutil.which("qemu-x86_64") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    program = TESTBINS / "x86-64" / "interp.static"
    assert main(["record", "--emulate", "-o", str(tmp_path / "x"), "--", str(program)]) == 2
    assert "needs a C compiler" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--startup"], ["--until", "main"]])
def test_what_is_recorded_for_ever_has_no_start(words: list[str]) -> None:
    for target in (["--", "true"], ["--dry-run", "-a"]):
        with pytest.raises(InputError, match="has started long ago"):
            run("--continuous", *words, *target)


def test_a_function_that_ends_a_start_is_told_to_the_emulator(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = TESTBINS / "x86-64" / "interp.static"
    assert run("--dry-run", "-o", tmp_path / "x", "--until", "run", "--", program) == 0
    assert re.search(rf",until=\d+,untilin={program.resolve()} ", capsys.readouterr().out)


@pytest.fixture
def with_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`with_events("exit 0")`: this machine with a performance counter, and perf as this script."""
    here = read_machine(perf_version=lambda: "6.1")
    pmus, cpu = (Pmu("cpu", None, 0, 0, frozenset()),), replace(here.cpu, vendor="other")
    machine = replace(here, privileged=True, pmus=pmus, cpu=cpu)
    monkeypatch.setattr("lbr2pgo.recorders.machine.read_machine", lambda: machine)

    def stub(script: str) -> Path:
        perf = tmp_path / "bin" / "perf"
        perf.parent.mkdir()
        perf.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n{script}\n')
        perf.chmod(0o755)
        monkeypatch.setenv("PATH", f"{perf.parent}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "log"

    return stub


def test_perf_samples_instructions_where_there_are_no_branch_records(
    with_events: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = with_events("exit 0")
    assert run("-o", tmp_path / "x", "--", "true") == 0
    command = log.read_text().splitlines()[-1]
    assert command.startswith(f"record -e instructions:u -c 2000003 -o {tmp_path / 'x'} -- ")
    said = capfd.readouterr().err
    assert "Sampling instructions with perf, for convert --no-lbr: no branch recorder of" in said


def test_what_perf_wrote_is_told_and_what_was_there_before_is_not(
    with_events: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "x"
    with_events('case "$*" in *trial*) ;; *) [ -e "$7" ] && exit 3; echo recorded > "$7";; esac')
    assert run("-o", recording, "--", "true") == 0
    told = f"wrote {recording} (9 bytes): lbr2pgo convert {recording} --no-lbr --llvm OUT"
    assert told in capfd.readouterr().err.splitlines()
    assert run("-o", recording, "--", "true") == 3
    assert "wrote" not in capfd.readouterr().err


def test_the_software_lbr_follows_where_the_kernel_cannot_count_the_events_it_shows(
    with_events: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_events("echo The instructions:u event is not supported. >&2; exit 129")
    assert run("-c", "499", "-o", tmp_path / "x", "--", "true") == 0
    said = capfd.readouterr().err
    assert "perf can't sample instructions here: The instructions:u event is not supported" in said
    assert "Using the software LBR" in said
    assert (tmp_path / "x").read_bytes().startswith(b"PERFILE2")


def test_samples_of_instructions_that_were_asked_for_are_not_emulated(
    with_events: Callable[[str], Path], tmp_path: Path
) -> None:
    with_events("exit 129")
    with pytest.raises(MissingToolError, match="can't sample instructions"):
        run("--no-lbr", "-o", tmp_path / "x", "--", "true")
