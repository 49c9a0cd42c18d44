"""What a terminal shows of a loop's steps."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from lbr2pgo.cli import messages
from lbr2pgo.cli.step_lines import StepLines
from lbr2pgo.pgo.steps import CommandLine, Detail, Title


def told(lines: StepLines) -> None:
    lines.say(Title("1. Build"))
    lines.say(CommandLine("make"))
    lines.is_over("1. Build", 2.5, None)
    lines.say(Title("2. Train"))
    lines.say(CommandLine("./app"))
    lines.say("   Note: few samples")
    lines.say(Detail("12 samples"))
    lines.is_over("2. Train", 61, 30.0)


class Screen(StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """As they stand there: what comes behind a carriage return is written over the line."""
        shown = []
        for line in self.getvalue().removesuffix("\n").split("\n"):
            cells = ""
            for written in line.split("\r"):
                cells = written + cells[len(written) :]
            shown.append(cells.rstrip())
        return shown


def shown(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Not a fixture: pytest puts its own streams back before a test begins."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    told(StepLines())
    assert capsys.readouterr().err.splitlines() == [
        "1. Build: 2.5 s", "   Note: few samples", "2. Train: 1 min 1 s, about 30 s left",
    ]  # fmt: skip


def test_a_terminal_shows_what_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, lines = shown(monkeypatch), StepLines()
    lines.say(Title("1. Build"))
    assert screen.getvalue() == "1. Build"
    lines.is_over("1. Build", 2.5, None)
    assert screen.lines() == ["1. Build: 2.5 s"]
    told(lines)
    assert screen.lines()[1:] == [
        "1. Build: 2.5 s", "2. Train", "   Note: few samples",
        "2. Train: 1 min 1 s, about 30 s left",
    ]  # fmt: skip


def test_steps_at_once_have_a_line_each_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, lines = shown(monkeypatch), StepLines()
    lines.say(Title("1. plain"))
    lines.say(Title("2. lines"))
    assert screen.lines() == ["1. plain, 2. lines"]
    lines.is_over("2. lines", 3.0, 2.0, "the same")
    assert screen.lines() == ["2. lines: the same: 3.0 s, about 2.0 s left", "1. plain"]
    lines.is_over("1. plain", 4.0, None)
    assert screen.lines() == [
        "2. lines: the same: 3.0 s, about 2.0 s left", "1. plain: 4.0 s"
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [20, 80])
def test_what_is_at_work_takes_one_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen, lines = shown(monkeypatch), StepLines()
    for number in range(40):
        lines.say(Title(f"{number}. kind"))
    (line,) = screen.lines()
    assert len(line) == columns - 1


def test_a_program_that_runs_has_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, lines = shown(monkeypatch), StepLines()
    lines.say(Title("1. Train"))
    with lines.watch(lambda: "nothing yet"):
        assert screen.getvalue() == "1. Train\n"


def test_a_step_that_fails_says_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    lines = StepLines()
    told(lines)
    capsys.readouterr()
    with pytest.raises(KeyError), lines.naming_failures():
        raise KeyError
    assert capsys.readouterr().err == ""  # nothing was at work
    lines.say(Title("1. Build"))
    lines.say(CommandLine("make"))
    with pytest.raises(KeyError), lines.naming_failures():
        raise KeyError
    assert capsys.readouterr().err == "1. Build: failed\n   make\n"


def test_verbose_says_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_wanted", messages._VERBOSE)
    told(StepLines())
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["1. Build", "   make", "1. Build: 2.5 s"]
    assert "   12 samples" in said
