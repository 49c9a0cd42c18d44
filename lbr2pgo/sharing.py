"""Work on items in several threads at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")


def threads() -> int:
    """How many threads to work in: one for each processor, but what we do is not worth many."""
    return min(len(os.sched_getaffinity(0)), 2)


def share(items: Iterable[tuple[*Ts]], workers: Sequence[Callable[[Unpack[Ts]], object]]) -> None:
    """Call one of the workers with each item's parts; each works in a thread of its own.

    Items are made one at a time, and given out in their order. What making or working raises is
    raised here, after which no more items are given out.

    >>> share([(2, 3), (4, 5)], [lambda a, b: print(a * b)])
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
