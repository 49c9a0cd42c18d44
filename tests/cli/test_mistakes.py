"""What newcomers get wrong: each mistake is answered in a line or two, with the cure."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from builders.recordings import RECORDING, STATIC, TESTBINS, recording_of

MISTAKES = {
    "a mistyped command": ("convrt perf.data", "did you mean convert?"),
    "a mistyped option": ("convert perf.data --binry app", "did you mean --binary?"),
    "an option before the command": ("--verbose convert perf.data", "behind the command"),
    "a recording behind options": (
        "convert perf.data --binary app else.data", "words without an option stand together",
    ),
    "no recording": ("convert --binary app", "PROFILE"),
    "a recording that is not there": ("convert pref.data --binary app", "Check the path"),
    "a program that is not there": ("convert perf.data --binary ap", "Check the path"),
    "recording and program exchanged": ("convert app --binary perf.data", "--binary"),
    "a written profile as recording": ("convert app.prof --binary app", "lbr2pgo check"),
    "a packed recording": ("convert perf.data.gz --binary app", "Unpack it first"),
    "a script as program": ("convert perf.data --binary script.sh", "not an ELF file"),
    "another build": ("convert perf.data --binary other/app", "Give the binary that was recorded"),
    "two programs recorded": ("convert perf.data else.data", "Name the program with --binary"),
    "a directory that is not there": (
        "convert perf.data --binary app --llvm out/app.prof", "Create the directory first",
    ),
    "the recording as output": (
        "convert perf.data --binary app --llvm perf.data", "Give every output a path of its own",
    ),
    "two outputs with one name": (
        "convert perf.data --binary app --llvm x --fdata x", "Give every output a path of its own",
    ),
    "an unknown format": (
        "convert perf.data --binary app --llvm x --llvm-format binary", "did you mean extbinary?",
    ),
    "an option of the other format": (
        "convert perf.data --binary app --llvm x --md5", "Add --llvm-format extbinary",
    ),
    "a mistyped event": ("convert perf.data --binary app --event cyclse", "did you mean cycles?"),
    "a name as process": ("convert perf.data --binary app --pid app", "no list of numbers"),
    "a mistyped analysis": (
        "report perf.data --binary app --only hot-branch", "did you mean hot-branches?",
    ),
    "a mistyped function": ("report perf.data --binary app --function mian", "main"),
    "a directory as page": ("report perf.data --binary app --html other", "Is a directory"),
    "nothing to record": ("record", "-- program arguments"),
    "a program to record that is not there": ("record -- ./ap", "./ap"),
    "a process and a program to record": ("record -p 1 -- ./app", "Leave out one"),
    "a process that an emulator should record": ("record --emulate -p 1", "start the program"),
    "two rates": ("record -c 99 -F 99 -- ./app", "Leave out -c or -F"),
    "a mistyped filter": ("record -j any_cal -- ./app", "any_call"),
    "a function that is missing": ("dump disasm perf.data --binary app", "--function"),
    "a recording as written profile": ("dump profile perf.data", "lbr2pgo"),
    "no binary to check against": ("check app.prof", "--binary"),
    "nowhere to write": ("bolt app --fdata app.fdata", "--output"),
    "an unknown build system": ("share autotools", "cmake, make, meson, bazel, git"),
    "nothing to train with": ("pgo --build make --binary app", "--train"),
    "nothing to build with": ("pgo --binary app --train ./app", "--cargo"),
    "exact counts by context": (
        "pgo --build make --binary app --train ./app --exact --contexts", "Leave out --exact",
    ),
    "a mistyped step": ("pgo --build make --binary app --from-step trian", "did you mean train?"),
    "a program to measure that is not there": ("measure ./ap", "./ap"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a newcomer works."""
    app = Path(shutil.copy(STATIC, tmp_path / "app"))
    recording = recording_of(app)
    (tmp_path / "perf.data.gz").write_bytes(gzip.compress(recording.read_bytes()))
    shutil.copy(RECORDING, tmp_path / "else.data")
    (tmp_path / "app.prof").write_text("main:10:1\n 1: 5\n")
    (tmp_path / "app.fdata").write_text("1 main 4 1 main 0 0 5\n")
    (tmp_path / "script.sh").write_text("#!/bin/sh\n")
    (tmp_path / "other").mkdir()
    shutil.copy(TESTBINS / "x86-64" / "shapes.static", tmp_path / "other" / "app")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize(("line", "cure"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_with_its_cure(command, folder: Path, line: str, cure: str) -> None:
    before = contents(folder)
    answer = command(*line.split())
    assert answer.code == 2
    told = answer.err[answer.err.index("lbr2pgo") :].splitlines()
    assert len(told) <= 2, told
    assert cure in answer.err
    assert contents(folder) == before
