"""A progress bar: only on a terminal, only for what takes longer than a second."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0
"""Seconds after which a waiting person wants to see something."""
_PACE = 0.1
"""Seconds from one picture to the next."""


class SampleProgress:
    """Shows the stage at hand and how many samples were read so far.

    Call it with the number of samples that came since the last call. An alarm draws the bar, not
    a thread: beside other threads no copy of a process can be made (see `background`).
    """

    def __init__(self) -> None:
        self._samples = 0
        self._stage = "reading"
        self._bar: Progress | None = None
        is_main = threading.current_thread() is threading.main_thread()
        self._can_show = sys.stderr.isatty() and is_main

    def __enter__(self) -> SampleProgress:
        if self._can_show:
            self._before = signal.signal(signal.SIGALRM, lambda *_: self._wake())
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._can_show:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)
        if self._bar is not None:
            self._draw()
            self._bar.stop()

    def __call__(self, samples: int) -> None:
        """Take note of samples that were read."""
        self._samples += samples

    def stage(self, name: str) -> None:
        """Take note of what is done from now on."""
        self._stage = name

    def _wake(self) -> None:
        with suppress(RuntimeError):  # in the middle of another write to the terminal
            self._draw()
        signal.setitimer(signal.ITIMER_REAL, _PACE)

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.add_task(self._stage, total=None)
            self._bar.start()
        (task,) = self._bar.task_ids
        self._bar.update(task, description=self._stage, completed=self._samples, refresh=True)


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} samples"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
    )
