"""`lbr2pgo pgo` as a user runs it; the loop's own tests stand in tests/build/test_loop.py."""

from __future__ import annotations

from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "testbins" / "src" / "interp.c"


@pytest.fixture(autouse=True)
def _tools(tool, monkeypatch, tmp_path):
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "clang-22")
    monkeypatch.setenv("CXX", "clang++-22")


def test_a_program_is_built_trained_rebuilt_and_measured(command):
    answer = command(
        "pgo", "--build", f"$CC $CFLAGS {SOURCE} -o app $LDFLAGS", "--binary", "app",
        "--train", "./app 2", "--measure", "./app 3", "-c", "1009", "--runs", "0",
    )  # fmt: skip
    assert answer.code == 0
    titles = [line for line in answer.err.splitlines() if line[:1].isdigit()]
    assert titles == [
        "1. Build what is to be recorded", "2. Train", "3. Convert for the compiler",
        "4. Build with the profile", "5. Measure",
    ]  # fmt: skip
    rows = [line.split()[0] for line in answer.out.splitlines()]
    assert rows[-8:-5] == ["program", "app.lbr2pgo/app.before", "app"]
    assert rows[-5:] == ["Verdict:", "Ship", "Keep", "Keep", "Keep"]
    assert "Ship app." in answer.out
    assert "samples for each location of hot functions" in answer.err
    assert "-fprofile-sample-use=" in answer.err


def test_a_build_that_fails_ends_it_with_what_the_compiler_lacks(command, tool, monkeypatch):
    monkeypatch.setenv("CC", tool("gcc"))
    answer = command(
        "pgo", "--build", f"$CC $CFLAGS {SOURCE} -o app", "--binary", "app", "--train", "./app"
    )
    assert answer.code == 2
    assert "does not know -fdebug-info-for-profiling" in answer.err
    assert "Set CC and CXX" in answer.err


def test_without_a_training_command_it_says_what_to_give(command):
    answer = command("pgo", "--build", "true", "--binary", "app")
    assert answer.code == 2
    assert "there is no training command" in answer.err
