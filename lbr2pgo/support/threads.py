"""Work on items in several threads at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def threads() -> int:
    """How many threads to work in: one for each processor, but what we do is not worth many."""
    return min(len(os.sched_getaffinity(0)), 2)


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
        tasks = [pool.submit(work, worker) for worker in workers]
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
        for item in items:
            pending.append(pool.submit(work, *item))
            if len(pending) > len(workers):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
