"""Work on items in several threads at once, as many as this process may use.

What a thread of ours starts has the same limit as the thread that started it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar, TypeVarTuple, Unpack

from lbr2pgo.support.errors import InputError

T = TypeVar("T")
Item = TypeVar("Item")
Ts = TypeVarTuple("Ts")

_LIMIT: ContextVar[int | None] = ContextVar("threads", default=None)
MANY = 16
"""So many threads work on parts of code that are read one by one: each has memory of its own."""
_MOST = 256
"""No more are started, whatever is asked for."""
_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def threads(worth: int = 2) -> int:
    """How many threads to work in: as `at_most` says, else one for each usable processor.

    `worth` is how many pay, where nobody asked for another number.
    """
    return min(_LIMIT.get() or min(usable_processors(), worth), _MOST)


@contextmanager
def at_most(limit: int | None) -> Iterator[None]:
    """Work in so many threads meanwhile; None stands for as many as pay.

    Raises InputError for none at all, and TypeError for what is no number.
    """
    if not isinstance(limit, int | None):
        raise TypeError(f"threads: a whole number is needed, not {limit!r}")
    if limit is not None and limit < 1:
        raise InputError("no thread may work", cure="Allow one at least (--threads 1).")
    before = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def usable_processors(groups: Path = _GROUPS) -> int:
    """Those that this process may run on, and no more than its control groups give it time of.

    `groups` is where control groups (version 2) are mounted.
    """
    processors = len(os.sched_getaffinity(0))
    for share in _shares(groups):
        processors = min(processors, max(1, round(share)))
    return processors


def _shares(groups: Path) -> Iterator[float]:
    """How many processors' time each limited group around this process has (`cpu.max`)."""
    own = ""
    with suppress(OSError):  # no /proc
        lines = _OWN_GROUP.read_text().splitlines()
        own = next((line[4:] for line in lines if line.startswith("0::/")), "")
    for group in (groups / own, *(groups / own).parents):
        if group.is_relative_to(groups):
            with suppress(OSError, ValueError):  # none, or none of this version
                quota, period = (group / "cpu.max").read_text().split()
                yield int(quota) / int(period)


def _as_here(work: Callable[[], T]) -> Callable[[], T]:
    """The same for another thread, under the limit of this one."""
    return partial(copy_context().run, work)


def distribute(
    items: Iterable[tuple[*Ts]], workers: Sequence[Callable[[Unpack[Ts]], object]]
) -> None:
    """Call one of the workers with each item's parts; each works in a thread of its own.

    Items are made one at a time, and given out in their order. What making or working raises is
    raised here, after which no more items are given out.

    >>> distribute([(2, 3), (4, 5)], [lambda a, b: print(a * b)])
    6
    20
    """
    waiting, lock, stopped = iter(items), Lock(), Event()

    def work(worker: Callable[[Unpack[Ts]], object]) -> None:
        try:
            while not stopped.is_set():
                with lock:
                    item = next(waiting, None)
                if item is None:
                    return
                worker(*item)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(len(workers), "lbr2pgo-worker") as pool:
        tasks = [pool.submit(_as_here(partial(work, worker))) for worker in workers]
        try:
            for task in tasks:
                task.result()
        finally:
            stopped.set()


def in_order(
    items: Iterable[tuple[*Ts]], workers: Sequence[Callable[[Unpack[Ts]], T]]
) -> Generator[T, None, None]:
    """What workers make of each item's parts, in the order of the items.

    Each worker works on one item at a time, in any thread; few more items are made than results
    are asked for. What making or working raises is raised here.

    >>> list(in_order([(2, 3), (4, 5)], [lambda a, b: a * b]))
    [6, 20]
    """
    idle: SimpleQueue[Callable[[Unpack[Ts]], T]] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def work(*item: *Ts) -> T:
        worker = idle.get()
        try:
            return worker(*item)
        finally:
            idle.put(worker)

    pending: deque[Future[T]] = deque()
    with ThreadPoolExecutor(len(workers), "lbr2pgo-worker") as pool:
        try:
            for item in items:
                pending.append(pool.submit(_as_here(partial(work, *item))))
                if len(pending) > len(workers):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for task in pending:
                task.cancel()


def both(one: Callable[[], T], other: Callable[[], Item]) -> tuple[T, Item]:
    """What two tasks make, at the same time if two threads may work, else the other first.

    >>> both(lambda: 2, lambda: "b")
    (2, 'b')
    """
    if threads() == 1:
        made_before = other()
        return one(), made_before
    with ThreadPoolExecutor(1, "lbr2pgo-worker") as pool:
        made = pool.submit(_as_here(other))
        return one(), made.result()


def made_of_each(make: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
    """What is made of each item, in their order, in as many threads as may work (see `in_order`).

    >>> list(made_of_each(str, [2, 3]))
    ['2', '3']
    """
    waiting = iter(items)
    begun = list(islice(waiting, 2))
    width = threads(MANY) if len(begun) > 1 else 1
    waiting = chain(begun, waiting)
    if width == 1:
        return map(make, waiting)
    return in_order(((item,) for item in waiting), [make] * width)
