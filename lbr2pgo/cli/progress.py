"""A progress bar: only on a terminal, only for what takes longer than a second."""

from __future__ import annotations

import sys
from threading import Timer
from types import TracebackType
from typing import TYPE_CHECKING

from lbr2pgo.cli import messages

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0
"""Seconds after which a waiting person wants to see something."""


class SampleProgress:
    """Shows the stage at hand and how many samples were read so far.

    Call it with the number of samples that came since the last call.
    """

    def __init__(self) -> None:
        self._samples = 0
        self._stage = "reading"
        self._bar: Progress | None = None
        self._timer = Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> SampleProgress:
        if sys.stderr.isatty() and not messages.is_quiet():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()  # it may be about to show the bar
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, samples: int) -> None:
        """Take note of samples that were read."""
        self._samples += samples
        self._update()

    def stage(self, name: str) -> None:
        """Take note of what is done from now on."""
        self._stage = name
        self._update()

    def _show(self) -> None:
        """Show the bar, which rich then draws in a thread of its own."""
        bar = _new_bar()
        bar.add_task("", total=None)
        bar.start()
        self._bar = bar
        self._update()

    def _update(self) -> None:
        if self._bar is not None:
            (task,) = self._bar.task_ids
            self._bar.update(task, description=self._stage, completed=self._samples)


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
    )
