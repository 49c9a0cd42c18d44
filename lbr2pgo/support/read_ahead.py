"""Reading ahead in a second thread, while the first one counts what was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")

_DEPTH = 2
"""Batches that may wait; the memory for them is taken whether they help or not."""


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items in the same order, made in another thread.

    What making them raises is raised here, in its place. A consumer that stops early ends the
    thread too.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    ready: Queue[tuple[T | None, BaseException | None]] = Queue(_DEPTH)
    stopped = Event()

    def make() -> None:
        problem = None
        try:
            for item in items:
                ready.put((item, None))
                if stopped.is_set():
                    return
        except BaseException as error:
            problem = error
        ready.put((None, problem or StopIteration()))

    thread = Thread(target=make, name="lbr2pgo-reader", daemon=True)
    thread.start()
    try:
        yield from _taken(ready)
    finally:
        stopped.set()
        while thread.is_alive():
            while not ready.empty():
                ready.get()
            thread.join(0.01)


def _taken(ready: Queue[tuple[T | None, BaseException | None]]) -> Iterator[T]:
    while True:
        item, problem = ready.get()
        if isinstance(problem, StopIteration):
            return
        if problem is not None:
            raise problem
        assert item is not None
        yield item
