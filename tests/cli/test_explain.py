"""`lbr2pgo pgo --explain` as a user runs it; what it finds is tests/pgo/test_explain.py's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def builds(tool):
    """One program at `-O0` and at `-O2`."""
    clang = tool("clang-22")
    tool("qemu-x86_64")
    Path("a.cc").write_text(
        "static int twice(int x) { return x * 2; }\n"
        "int main() { int s = 0; for (int i = 0; i < 99; i++) s += twice(i); return s == 1; }\n"
    )
    for name, level in (("a", "-O0"), ("b", "-O2")):
        subprocess.run([clang, level, "-g1", "a.cc", "-o", name], check=True)


def test_it_says_how_much_and_why_in_names_that_people_read(command, builds):
    answer = command("pgo", "--explain", "a", "b", "--binary", "a", "--measure", "./a")
    assert answer.code == 0
    first, second, third, *_ = answer.out.splitlines()
    assert (first, second) == ("A is a", "B is b")
    assert third.startswith("B needs ")
    assert "fewer instructions" in third
    inlined = next(
        line for line in answer.out.splitlines() if "twice(int)" in line and "198" in line
    )
    assert inlined.split()[1:4] == ["198", "198", "0"]
    assert "build with --remarks" in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "b"], "--binary is missing"),
        (["a", "b", "--binary", "a"], "there is no command to run"),
        (["a", "none", "--binary", "a", "--measure", "./a"], "none: there is no such build"),
        (["a", "a.cc", "--binary", "a", "--measure", "./a"], "a.cc"),
    ],
)
def test_what_lacks_is_said(command, builds, words, said):
    answer = command("pgo", "--explain", *words)
    assert answer.code == 2
    assert said in answer.err
