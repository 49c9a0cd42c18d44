"""What is said of wrong words, and lists in options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lbr2pgo.cli import _parser
from lbr2pgo.cli.parser import Parser, leaves, names, numbers, some_of
from lbr2pgo.support.executables import executable


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["convrt"], "convrt is not known; did you mean convert?"),
        (["convert", "--binry", "x", "y"], "no option --binry; did you mean --binary?"),
        (["convert", "--lvm=p", "x", "--binary", "y"], "no option --lvm; did you mean --llvm?"),
        (["record", "--perod", "5", "--", "x"], "no option --perod; did you mean --period?"),
        (["dump", "disam"], "disam is not known; did you mean disasm?"),
        (["convert", "x", "--binary", "y", "--frobnicate"], "--frobnicate is not known"),
        (["convert", "x", "--binary", "y", "--llvm-format", "extbin"], "did you mean extbinary?"),
        (["share", "autoconf"], "(there are cmake, make, meson, bazel, git)"),
        (["convert", "x", "--binary", "y", "--compat", "perf2blot"], "did you mean perf2bolt?"),
        (["convert", "x", "--binary", "y", "--pid", "1,me"], "1,me is no list of numbers"),
    ],
)
def test_a_wrong_word_gets_the_right_one(command, words: list[str], says: str) -> None:
    answer = command(*words)
    assert answer.code == 2
    assert says in answer.err
    assert len(answer.err.splitlines()) == 2


def test_an_option_of_the_recorded_program_is_none_of_ours() -> None:
    found = _parser().parse_args(["record", "--", "./app", "--binry", "convrt"])
    assert found.program == ["--", "./app", "--binry", "convrt"]


def test_a_program_is_one_here_or_else_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("app", "other"):
        (programs / name).touch(0o755)
    (tmp_path / "app").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(programs))
    assert executable("app") == Path("app")
    assert executable("other") == programs / "other"
    assert executable("./other") == Path("other")
    assert executable("missing") == Path("missing")


def test_lists_take_commas_and_repetition() -> None:
    parser = Parser(prog="x")
    parser.add_argument("--pid", type=numbers, action="extend", default=[])
    parser.add_argument("--only", type=names, action="extend", default=[])
    found = parser.parse_args(["--pid", "1,2", "--only", "a, b,", "--pid=3"])
    assert (found.pid, found.only) == ([1, 2, 3], ["a", "b"])


def test_a_list_of_known_names_has_no_other() -> None:
    known = some_of("perf2bolt", "llvm-profgen")
    assert known("llvm-profgen,perf2bolt") == ["llvm-profgen", "perf2bolt"]
    with pytest.raises(argparse.ArgumentTypeError, match="bolt2perf"):
        known("perf2bolt,bolt2perf")


def test_an_option_with_a_list_leaves_the_words_behind_it_alone() -> None:
    words = ["report", "--only", "hot-branches", "--pid", "7", "perf.data", "b.data"]
    found = _parser().parse_args(words)
    assert (found.only, found.pid) == (["hot-branches"], [7])
    assert found.profiles == ["perf.data", "b.data"]


def test_the_commands_that_do_something_are_leaves() -> None:
    names = {parser.prog for parser in leaves(_parser())}
    assert {"lbr2pgo convert", "lbr2pgo dump cfg", "lbr2pgo msr plan"} <= names
    assert not {"lbr2pgo", "lbr2pgo dump", "lbr2pgo msr"} & names


@pytest.mark.parametrize("columns", ["", "0", "wide", "-1", "61"])
def test_help_is_as_wide_as_argparse_makes_it(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    described = "what it is for, in more words than a line of any of these widths has room for"
    ours, theirs = Parser(prog="a"), argparse.ArgumentParser(prog="a")
    for each in (ours, theirs):
        each.add_argument("--option", help=described)
    assert ours.format_help() == theirs.format_help()
