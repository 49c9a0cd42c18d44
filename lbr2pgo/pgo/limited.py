"""A command with a time limit, ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.support.errors import InputError


def run_limited(command: Sequence[str], folder: Path, log: Path, seconds: float | None) -> int:
    """Run a command in a folder, with what it prints in a file; returns its exit code.

    Raises InputError after so many seconds, None for no limit. It and what it started are killed
    then, or if this process is interrupted.
    """
    with log.open("wb") as stream:
        child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise InputError("the budget was spent", cure="Give a longer --budget.") from None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
