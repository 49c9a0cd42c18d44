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
    lines.say(CommandLine("   make"))
    lines.is_over(2.5, None)
    lines.say(Title("2. Train"))
    lines.say(CommandLine("   ./app"))
    lines.say("   Note: few samples")
    lines.say(Detail("   12 samples"))
    lines.is_over(61, 30.0)


class Screen(StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True


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
    lines.is_over(2.5, None)
    assert screen.getvalue() == "1. Build: 2.5 s\n"
    told(lines)
    assert screen.getvalue().splitlines()[1:] == [
        "1. Build: 2.5 s", "2. Train", "   Note: few samples",
        "2. Train: 1 min 1 s, about 30 s left",
    ]  # fmt: skip


def test_a_program_that_runs_has_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, lines = shown(monkeypatch), StepLines()
    lines.say(Title("1. Train"))
    with lines.watch(lambda: "nothing yet"):
        assert screen.getvalue() == "1. Train\n"


def test_a_step_that_fails_says_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    lines = StepLines()
    lines.say(Title("1. Build"))
    lines.say(CommandLine("   make"))
    lines.fail()
    assert capsys.readouterr().err == "1. Build: failed\n   make\n"
    told(lines)
    capsys.readouterr()
    lines.fail()
    assert capsys.readouterr().err == ""


def test_verbose_says_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_wanted", messages._VERBOSE)
    told(StepLines())
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["1. Build", "   make", "1. Build: 2.5 s"]
    assert "   12 samples" in said
