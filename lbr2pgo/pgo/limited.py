"""Commands that end with all that they started, and leave no temporary file behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lbr2pgo.pgo.standard_input import reading
from lbr2pgo.support.errors import InputError

_TIDYING = 2.0
"""Seconds that a command has to tidy up, once it is to end; so long make needs at most."""


def run_whole(
    command: Sequence[str],
    environment: Mapping[str, str],
    seconds: float | None = None,
    tidying: float = _TIDYING,
    **how: Any,
) -> int:
    """Run a command to its end; returns its exit code. `how` goes to Popen.

    It has a directory for temporary files that goes with it: compilers leave theirs behind where
    they are interrupted. If this process is interrupted, or after so many seconds (None: no limit;
    raises TimeoutExpired), it and what it started are ended.
    """
    with TemporaryDirectory(prefix="lbr2pgo-", ignore_cleanup_errors=True) as scratch:
        child = subprocess.Popen(
            command, env={**environment, "TMPDIR": scratch}, start_new_session=True, **how
        )
        try:
            return child.wait(seconds)
        finally:
            if child.poll() is None:
                _end(child, tidying)


def _end(child: subprocess.Popen[bytes], tidying: float) -> None:
    """End a process group, by force if it takes too long or this is interrupted once more."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        child.wait(tidying)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def run_limited(
    command: Sequence[str],
    folder: Path,
    log: Path,
    seconds: float | None,
    source: Path | None = None,
) -> int:
    """Run a command in a folder, with what it prints in a file; returns its exit code.

    `source` is what it reads, else nothing. Raises InputError after so many seconds, None for no
    limit.
    """
    with log.open("wb") as stream, reading(source) as stdin:
        try:
            return run_whole(
                command, os.environ, seconds, 2 * _TIDYING,  # it may run commands this way itself
                cwd=folder, stdin=stdin, stdout=stream, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise InputError("the budget was spent", cure="Give a longer --budget.") from None
