"""What a waiting person sees: only on a terminal, only of what takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread, Timer
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from lbr2pgo.cli import messages
from lbr2pgo.support.counted import counted

if TYPE_CHECKING:
    from rich.progress import Progress

    from lbr2pgo.support.timings import Timings

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds after which a waiting person wants to see something."""
_BAR = 10
"""Columns of a bar, beside which there is room in 80 for all else."""
_LONGEST_PAUSE = 60.0
"""Seconds between two lines about a program that runs."""


def is_watched() -> bool:
    """Whether somebody sees what appears on standard error, and wants to."""
    return sys.stderr.isatty() and not messages.is_quiet()


class SampleProgress:
    """Shows the stage at hand, how many samples were read so far, and how much is left.

    Call it with the number of samples that came since the last call, and the share of the inputs
    that was read (`support.headway.Progress`).
    """

    def __init__(self, inputs: Sequence[Path]) -> None:
        self._inputs = inputs
        self._size = 0
        """Bytes that the stage at hand reads."""
        self._samples = 0
        """Those that came in it."""
        self._before = 0
        """Those of the last stage that had any."""
        self._share: float | None = None
        self._stage = "reading"
        self._start = monotonic()
        self._bar: Progress | None = None
        self._drawing = Lock()
        self._timer = Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> SampleProgress:
        if is_watched():
            from lbr2pgo.sources.series import size_of

            self._size = sum(size_of(str(path)) for path in self._inputs)
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

    def __call__(self, samples: int, share: float | None = None) -> None:
        """Take note of samples that were read."""
        self._samples += samples
        self._share = share
        self._update()

    def stage(self, name: str, size: int = 0) -> None:
        """Take note of what is done from now on, with so many bytes."""
        if name == self._stage:  # with the next input
            self._size += size
            return
        self._before, self._samples = self._samples or self._before, 0
        self._stage, self._share, self._size = name, None, size
        self._start = monotonic()
        with self._drawing:
            if self._bar is not None:
                self._begin(self._bar)

    def _show(self) -> None:
        """Show the bar, which rich then draws in a thread of its own."""
        with self._drawing:
            self._bar = _new_bar()
            self._begin(self._bar)
            self._bar.start()

    def _begin(self, bar: Progress) -> None:
        """Begin anew: what rich knows of one stage tells nothing of the time of the next."""
        for task in bar.task_ids:
            bar.remove_task(task)
        bar.add_task(self._stage, total=None, read=self._read())

    def _update(self) -> None:
        with self._drawing:
            if self._bar is None:
                return
            (task,) = self._bar.task_ids
            total, completed = (None, 0.0) if self._share is None else (1.0, self._share)
            self._bar.update(task, total=total, completed=completed, read=self._read())

    def _read(self) -> str:
        """How much was read, and how fast while it is: in samples where there are any."""
        seconds = max(monotonic() - self._start, 0.001)
        number = self._samples or (0 if self._size else self._before)
        samples = counted(number, "sample")
        if self._samples and self._share is not None:
            return f"{samples}, {self._samples / seconds:,.0f}/s"
        if number:
            return samples
        megabytes = (self._share or 0) * self._size / 1e6
        return f"{megabytes:,.0f} MB, {megabytes / seconds:,.0f} MB/s" if megabytes else ""


def timed(inputs: Sequence[Path], work: Callable[[SampleProgress, Timings], T]) -> T:
    """Do what takes long, and show its stage at hand; with --verbose how long each took."""
    from lbr2pgo.support.timings import Timings

    with SampleProgress(inputs) as progress:
        timings = Timings(progress.stage)
        done = work(progress, timings)
    if messages.is_verbose():
        messages.show_times(timings)
    return done


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(_BAR),
        TaskProgressColumn(table_column=Column(min_width=4)),
        TextColumn("{task.fields[read]}"),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TimeRemainingColumn(table_column=Column(min_width=7)),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def watch(so_far: Callable[[], str]) -> Iterator[None]:
    """Say now and then how long a program has been running, and what it has done so far.

    These are whole lines, further and further apart, since the program writes to the same terminal:
    a bar would be drawn over its lines.
    """
    if not is_watched():
        yield
        return
    is_over = Event()
    thread = Thread(target=_tell, args=(is_over, so_far), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _tell(is_over: Event, so_far: Callable[[], str]) -> None:
    start, pause = monotonic(), _PATIENCE
    while not is_over.wait(pause):
        messages.say(f"{clock(monotonic() - start)}: {so_far()}")
        pause = min(2 * pause, _LONGEST_PAUSE)


def clock(seconds: float) -> str:
    """A span of time for people.

    >>> clock(0.314), clock(47.11), clock(754), clock(7200)
    ('0.3 s', '47 s', '12 min 34 s', '2 h 0 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
