"""How far files were read, from those who read them to who shows it.

Nothing in between hands it on: neither opening a file nor adding its counts up has a place for it.
What is told in another thread than the listener's is not heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[int, float | None], None]
"""Called with the number of samples read since the last call, and with the share of the input that
is read now, from 0 to 1, or None where nobody can tell."""

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Progress | None) -> Iterator[None]:
    """Let someone hear what is told inside; with None nobody does.

    >>> with heard_by(lambda samples, share: print(share)), part_of([3, 1], 1):
    ...     tell(0.5)
    0.875
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def part_of(sizes: list[int], current: int) -> Iterator[None]:
    """Say that inside one of several parts is read, which have these sizes in any unit."""
    listener, whole, before = _listener.get(), sum(sizes), sum(sizes[:current])

    def hear(samples: int, share: float | None) -> None:
        if listener is not None:
            known = None if share is None else (before + share * sizes[current]) / whole
            listener(samples, known)

    with heard_by(hear if whole else None):
        yield


def tell(share: float) -> None:
    """Say what share of the part at hand was read."""
    listener = _listener.get()
    if listener is not None:
        listener(0, share)
