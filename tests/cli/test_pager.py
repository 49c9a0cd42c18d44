"""What goes through a pager: on a pseudo-terminal only, with what the user says."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

REPORT = ["-m", "lbr2pgo", "report", str(RECORDING), "--binary", str(PIE), "--no-libraries"]


def on_a_terminal(*words: str, **environment: str) -> str:
    """What a terminal of 24 lines is sent."""
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **environment}
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *REPORT, *words], stdout=terminal, stdin=subprocess.DEVNULL, env=settings
    )
    os.close(terminal)
    pieces = []
    while True:
        try:
            piece = os.read(controller, 1 << 16)
        except OSError:  # Linux's way to say that nobody writes any more
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(controller)
    assert process.wait() == 0
    return b"".join(pieces).decode()


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """One that says that it is there, and with which settings."""
    script = tmp_path / "pager"
    script.write_text('#!/bin/sh\necho "paged, $LESS"\nexec cat\n')
    script.chmod(0o755)
    return str(script)


def test_a_full_report_goes_through_the_pager(pager: str) -> None:
    shown = on_a_terminal("--full", PAGER=pager)
    assert shown.startswith("paged, FRX")
    assert "Ends of stacks" in shown
    assert "\x1b[" in shown


def test_settings_of_the_user_stay(pager: str) -> None:
    assert on_a_terminal("--full", PAGER=pager, LESS="-S").startswith("paged, -S")


@pytest.mark.parametrize("none", ["", "cat", "/nowhere/pager"])
def test_without_a_pager_all_is_printed(none: str) -> None:
    assert "Ends of stacks" in on_a_terminal("--full", PAGER=none)


def test_a_pager_that_reads_nothing_is_no_error() -> None:
    assert "error" not in on_a_terminal("--full", PAGER="true")


def test_a_short_report_and_a_file_are_not_paged(pager: str, monkeypatch) -> None:
    assert "paged" not in on_a_terminal(PAGER=pager)
    monkeypatch.setenv("PAGER", pager)
    printed = subprocess.run([sys.executable, *REPORT, "--full"], capture_output=True, text=True)
    assert "paged" not in printed.stdout
