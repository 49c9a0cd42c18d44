"""Run a command in the foreground, so that what it recorded survives what ends the recorder."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

_LOOKS = 0.02
"""Seconds between looks whether a command may end."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends a command that runs too long."""

    seconds: float
    number: int
    """The signal that tells it so."""
    is_due: Callable[[], bool] | None = None
    """What may end it before that."""
    others: Callable[[], Iterable[int]] = tuple
    """Processes that it began, which end with it."""


def run_foreground(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: BinaryIO | None = None,
    ending: Ending | None = None,
    source: Path | None = None,
) -> int:
    """Run a command to its end; returns what `Popen.wait` does, but 0 if it dies of its ending.

    `output` takes its standard output, and `source` gives its input; these pass through else.
    The terminal's interrupt is the program's business alone, and what ends only this process is
    passed on, so that what was recorded can still be written. Both hold before the command starts:
    a signal may come with its first breath.
    """
    children: list[subprocess.Popen[bytes]] = []
    with (
        nullcontext() if source is None else source.open("rb") as stdin,
        _signals_to(children),
        subprocess.Popen(command, env=dict(environment), stdin=stdin, stdout=output) as process,
    ):
        children.append(process)
        return process.wait() if ending is None else _wait(process, ending)


def _wait(process: subprocess.Popen[bytes], ending: Ending) -> int:
    deadline = time.monotonic() + ending.seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            return process.wait(left if ending.is_due is None else min(left, _LOOKS))
        except subprocess.TimeoutExpired:
            if ending.is_due is not None and ending.is_due():
                break
    process.send_signal(ending.number)
    for number in {*ending.others()} - {process.pid}:
        with suppress(ProcessLookupError):
            os.kill(number, ending.number)
    code = process.wait()
    return 0 if code == -ending.number else code


@contextmanager
def _signals_to(children: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and gets signals
        return

    def forward(number: int, _: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    def leave(_: int, __: FrameType | None) -> None:
        pass

    wanted = {signal.SIGINT: leave, signal.SIGTERM: forward, signal.SIGHUP: forward}
    ours = {n: h for n, h in wanted.items() if signal.getsignal(n) is not signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in ours.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
