from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from lbr2pgo.support.threads import distribute, in_order


def endless(made: list[int]) -> Iterator[tuple[int]]:
    """1, 2, 3 …, noted as they are made."""
    while True:
        made.append(len(made) + 1)
        yield (made[-1],)


def test_each_item_is_worked_on_once() -> None:
    done: list[list[int]] = [[], [], []]
    distribute(((i,) for i in range(1000)), [each.append for each in done])
    assert sorted(i for each in done for i in each) == list(range(1000))
    assert all(each == sorted(each) for each in done)


def test_workers_work_at_the_same_time() -> None:
    both_there = threading.Barrier(2, timeout=10)
    distribute([(), ()], [both_there.wait, both_there.wait])


def test_nothing_to_do() -> None:
    distribute([], [pytest.fail, pytest.fail])


def test_what_a_worker_raises_ends_the_work() -> None:
    made: list[int] = []

    def work(item: int) -> None:
        if item > 5:
            raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        distribute(endless(made), [work, work])
    assert not [t for t in threading.enumerate() if t.name.startswith("lbr2pgo-worker")]


def test_what_making_items_raises_comes_after_the_work_on_those_before() -> None:
    done: list[int] = []

    def broken() -> Iterator[tuple[int]]:
        yield (1,)
        yield (2,)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        distribute(broken(), [done.append, done.append])
    assert sorted(done) == [1, 2]


def test_results_come_in_the_order_of_their_items() -> None:
    def slow(item: int) -> int:
        time.sleep(0.001 * (item % 3))
        return item

    assert list(in_order(((i,) for i in range(50)), [slow, slow])) == list(range(50))


def test_each_worker_works_on_one_item_at_a_time() -> None:
    locks = [threading.Lock(), threading.Lock()]

    def alone(lock: threading.Lock, item: int) -> int:
        assert lock.acquire(blocking=False)
        time.sleep(0.001)
        lock.release()
        return item

    workers = [partial(alone, lock) for lock in locks]
    assert list(in_order(((i,) for i in range(50)), workers)) == list(range(50))


def test_few_items_are_made_ahead_and_none_after_the_last_result() -> None:
    made: list[int] = []

    results = in_order(endless(made), [abs, abs])
    assert [next(results), next(results)] == [1, 2]
    results.close()
    assert len(made) <= 5
    assert not [t for t in threading.enumerate() if t.name.startswith("lbr2pgo-worker")]


@pytest.mark.parametrize("broken", ["worker", "items"])
def test_what_making_or_working_raises_ends_the_results(broken: str) -> None:
    def items() -> Iterator[tuple[int]]:
        yield from ((1,), (2,))
        if broken == "items":
            raise ValueError("damaged")
        yield (0,)

    with pytest.raises(ZeroDivisionError if broken == "worker" else ValueError):
        list(in_order(items(), [partial(divmod, 2)]))
