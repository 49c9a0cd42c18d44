"""Long output a screen at a time, as git shows it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console

_SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""Of less (quit if it fits, colours, no clearing) and lv, unless the user has other ones (git:
pager.c)."""


@contextmanager
def paged(console: Console) -> Iterator[Console]:
    """A console like this one, read through PAGER (less) where it is a terminal.

    An empty PAGER, and `cat`, are none.
    """
    command = shlex.split(os.environ.get("PAGER", "less"))
    if not console.is_terminal or not sys.stdout.isatty() or command in ([], ["cat"]):
        yield console
        return
    environment = {**_SETTINGS, **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment)
    except OSError:  # no such program
        yield console
        return
    before = signal.getsignal(signal.SIGINT)
    assert pager.stdin is not None
    try:
        yield Console(
            file=pager.stdin, width=console.width, force_terminal=True, no_color=console.no_color,
            highlight=False, markup=False, emoji=False,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the pager's: less stops scrolling
        with suppress(BrokenPipeError):  # whoever reads has seen enough
            pager.stdin.close()
        pager.wait()
        signal.signal(signal.SIGINT, before)
