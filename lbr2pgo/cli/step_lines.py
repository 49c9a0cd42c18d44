"""One line for each step of a loop, with its time and the time that is left.

Its commands, and what else is a detail, are shown with --verbose, or where it fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lbr2pgo.cli import messages
from lbr2pgo.cli.messages import say
from lbr2pgo.cli.progress import clock, is_watched, watch
from lbr2pgo.pgo.steps import Detail, Title


class StepLines:
    """Told what a loop says; a terminal shows a step's title while that is at work."""

    def __init__(self) -> None:
        self._title = ""
        self._details: list[str] = []
        self._is_open = False
        """Whether the title stands in a line that is not ended."""

    def say(self, text: str) -> None:
        """A title, a detail, or else a note for everyone."""
        if isinstance(text, Title):
            self._title, self._details = text, []
            self._begin()
        elif isinstance(text, Detail) and not messages.is_verbose():
            self._details.append(text)
        else:
            self._end_line()
            say(text)

    def is_over(self, seconds: float, left: float | None) -> None:
        """A step is."""
        took = clock(seconds) + (f", about {clock(left)} left" if left else "")
        if self._is_open:
            print(f": {took}", file=sys.stderr, flush=True)
        else:
            say(f"{self._title}: {took}")
        self._title, self._details, self._is_open = "", [], False

    def fail(self) -> None:
        """Say which step it was, and what it ran."""
        self._end_line()
        if self._title:
            say("\n".join([f"{self._title}: failed", *self._details]))

    @contextmanager
    def watch(self, so_far: Callable[[], str]) -> Iterator[None]:
        """As `progress.watch`, in lines of its own."""
        self._end_line()
        with watch(so_far):
            yield

    def _begin(self) -> None:
        if messages.is_verbose():
            say(self._title)
        elif is_watched():
            print(self._title, end="", file=sys.stderr, flush=True)
            self._is_open = True

    def _end_line(self) -> None:
        if self._is_open:
            print(file=sys.stderr, flush=True)
            self._is_open = False
