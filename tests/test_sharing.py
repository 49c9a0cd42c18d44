from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lbr2pgo.sharing import share


def test_each_item_is_worked_on_once() -> None:
    done: list[list[int]] = [[], [], []]
    share(((i,) for i in range(1000)), [each.append for each in done])
    assert sorted(i for each in done for i in each) == list(range(1000))
    assert all(each == sorted(each) for each in done)


def test_workers_work_at_the_same_time() -> None:
    both_there = threading.Barrier(2, timeout=10)
    share([(), ()], [both_there.wait, both_there.wait])


def test_nothing_to_do() -> None:
    share([], [pytest.fail, pytest.fail])


def test_what_a_worker_raises_ends_the_work() -> None:
    made = []

    def endless() -> Iterator[tuple[int]]:
        while True:
            made.append(0)
            yield (len(made),)

    def work(item: int) -> None:
        if item > 5:
            raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        share(endless(), [work, work])
    assert not [t for t in threading.enumerate() if t.name.startswith("lbr2pgo-worker")]


def test_what_making_items_raises_comes_after_the_work_on_those_before() -> None:
    done: list[int] = []

    def broken() -> Iterator[tuple[int]]:
        yield (1,)
        yield (2,)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        share(broken(), [done.append, done.append])
    assert sorted(done) == [1, 2]
