"""One line for each step of a loop or a search, with its time and the time that is left.

Its commands, and what else is a detail, are shown with --verbose, or where it fails.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

from lbr2pgo.cli import messages
from lbr2pgo.cli.messages import say
from lbr2pgo.cli.progress import clock, is_watched, watch
from lbr2pgo.pgo.steps import Detail, Title
from lbr2pgo.support.printable import printable


class StepLines:
    """Told what a loop says; a terminal shows the titles of what is at work, in one line."""

    def __init__(self) -> None:
        self._at_work: dict[str, list[str]] = {}
        """Titles, and the details of each."""
        self._open = ""
        """What stands in the line that is not ended."""
        self._lock = RLock()  # steps of a search are at work at once

    def say(self, text: str) -> None:
        """A title, a detail, or else a note for everyone."""
        with self._lock:
            if isinstance(text, Title):
                self._at_work[text] = []
                self._begin(text)
            elif isinstance(text, Detail) and not messages.is_verbose():
                for details in [*self._at_work.values()][-1:]:
                    details.append(text)
            else:
                self._end_line()
                say(text)

    def is_over(self, title: str, seconds: float, left: float | None, found: str = "") -> None:
        """A step is, and what came of it."""
        took = clock(seconds) + (f", about {clock(left)} left" if left else "")
        with self._lock:
            self._at_work.pop(title, None)
            line = ": ".join(filter(None, (title, found, took)))
            if self._open:
                self._draw(line)
                self._end_line()
            else:
                say(line)
            self._show_work()

    @contextmanager
    def naming_failures(self) -> Iterator[None]:
        """Where what is done fails, say which steps were at work, and what they ran."""
        try:
            yield
        except BaseException:
            self._end_line()
            for title, details in self._at_work.items():
                say("\n".join([f"{title}: failed", *details]))
            raise

    @contextmanager
    def watch(self, so_far: Callable[[], str]) -> Iterator[None]:
        """As `progress.watch`, in lines of its own."""
        self._end_line()
        with watch(so_far):
            yield

    def _begin(self, title: str) -> None:
        if messages.is_verbose():
            say(title)
        else:
            self._show_work()

    def _show_work(self) -> None:
        if self._at_work and is_watched() and not messages.is_verbose():
            width = shutil.get_terminal_size().columns - 1
            self._draw(", ".join(self._at_work)[:width])

    def _draw(self, line: str) -> None:
        """Over what the line holds, without a terminal's own codes."""
        back = "\r" if self._open else ""
        wiped = printable(line).ljust(len(self._open))
        print(f"{back}{wiped}", end="", file=sys.stderr, flush=True)
        self._open = line

    def _end_line(self) -> None:
        if self._open:
            print(file=sys.stderr, flush=True)
            self._open = ""
