"""Counters in a program, by clang and its llvm-profdata."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lbr2pgo.pgo.counters import count, merge_counts
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError, MissingToolError, OutputError

SOURCE = "int main(int argc, char **argv) { int s = 0; while (argc--) s += argc; return s > 9; }"


def trained(*commands: str) -> Training:
    return Training(commands, None, emulate=False)


@pytest.fixture
def place(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Compile the program that counts; gives the directory of its counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLVM_PROFDATA", raising=False)
    clang = tool("clang-22")

    def compiled(flags: str) -> Path:
        Path("a.c").write_text(SOURCE)
        subprocess.run([clang, "-O2", *flags.split(), "a.c", "-o", "app"], check=True)
        return Path("raw")

    return compiled


def test_runs_of_several_commands_add_up_and_earlier_ones_are_forgotten(
    place: Callable[[str], Path], tool: Callable[[str], str]
) -> None:
    raw, said = place("-fprofile-generate=raw"), list[str]()
    subprocess.run(["./app", "an", "earlier", "one"], check=True)
    count(trained("./app 1 2", "./app 1"), raw, said.append)
    merge_counts(raw, Path("app.profdata"), said.append)
    shown = subprocess.run(
        [tool("llvm-profdata-22"), "show", "--all-functions", "--counts", "app.profdata"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "Block counts: [5, 2]" in shown
    assert said[:2] == ["   ./app 1 2", "   ./app 1"]
    assert said[2].endswith("merge -o app.profdata raw")


def test_of_several_tools_that_one_is_taken_which_reads_the_counts(
    place: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = place("-fprofile-generate=raw")
    count(trained("./app"), raw, print)
    other = tmp_path / "bin" / "llvm-profdata"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho of another version >&2; exit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{os.environ['PATH']}")
    said = list[str]()
    merge_counts(raw, Path("app.profdata"), said.append)
    assert Path("app.profdata").stat().st_size > 0
    assert str(other) not in said[0]


def test_a_run_that_fails_or_does_not_count_is_told(place: Callable[[str], Path]) -> None:
    raw = place("")
    with pytest.raises(InputError, match="has written no counts"):
        count(trained("./app"), raw, print)
    with pytest.raises(InputError, match="failed with exit code 1") as caught:
        count(trained("./app", "./app 1 2 3 4 5 6"), raw, print)
    assert caught.value.where == "./app 1 2 3 4 5 6"
    with pytest.raises(InputError, match="has written no counts"):
        count(replace(trained("./app 1 2 3 4 5 6"), any_status=True), raw, print)


def test_counts_that_no_tool_reads_are_told_with_what_it_said(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = place("")
    raw.mkdir()
    (raw / "broken.profraw").write_bytes(b"no counts")
    with pytest.raises(OutputError, match=r"could not add the counts up: .*raw"):
        merge_counts(raw, Path("app.profdata"), print)
    monkeypatch.setenv("LLVM_PROFDATA", "no-such-tool")
    with pytest.raises(MissingToolError, match="llvm-profdata is not installed"):
        merge_counts(raw, Path("app.profdata"), print)
