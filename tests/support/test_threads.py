from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import lbr2pgo
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.threads import (
    MANY,
    at_most,
    both,
    distribute,
    in_order,
    made_of_each,
    threads,
    usable_processors,
)


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


def test_what_waits_is_not_begun_after_the_last_result() -> None:
    begun: list[int] = []
    may_end = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        assert item == 1 or may_end.wait(timeout=10)
        return item

    results = in_order(endless([]), [work, work])
    assert next(results) == 1
    threading.Timer(0.05, may_end.set).start()
    results.close()  # as Ctrl-C does
    assert len(begun) <= 3


@pytest.mark.parametrize("limit", [1, 2, 64])
def test_few_items_are_in_flight_whatever_the_threads(limit: int) -> None:
    made: list[int] = []
    with at_most(limit):
        results = made_of_each(lambda item: item[0], endless(made))
        assert [next(results) for _ in range(3)] == [1, 2, 3]
    assert len(made) <= limit + 5


def test_threads_are_as_many_as_are_allowed_there_and_in_threads_of_ours() -> None:
    with at_most(3):
        assert threads() == threads(MANY) == 3
        assert list(in_order([(), ()], [threads] * 2)) == [3, 3]
        with at_most(None):
            assert threads() <= 2
    assert threads(1) == 1


def test_no_thread_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no thread may work"), at_most(0):
        pytest.fail("worked")


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match="threads: a whole number is needed, not '2'"):
        lbr2pgo.convert("perf.data", threads="2")  # type: ignore[arg-type]


def test_no_more_are_started_than_ever_pay() -> None:
    with at_most(100_000):
        assert threads() == 256


def test_two_tasks_are_done_at_the_same_time_if_two_threads_may_work() -> None:
    there = threading.Barrier(2, timeout=10)
    with at_most(2):
        assert sorted(both(there.wait, there.wait)) == [0, 1]
    with at_most(1):
        assert both(threading.current_thread, threads) == (threading.current_thread(), 1)


def test_what_either_task_raises_is_raised() -> None:
    def fail() -> int:
        raise ValueError("so")

    for tasks in ((fail, int), (int, fail)):
        with at_most(2), pytest.raises(ValueError, match="so"):
            both(*tasks)


def test_one_item_takes_no_thread() -> None:
    assert list(made_of_each(lambda _: threading.current_thread(), [0])) == [
        threading.current_thread()
    ]


@pytest.mark.parametrize(
    ("limits", "share"),
    [({}, None), ({"": "max 100000"}, None), ({"": "150000 100000"}, 2), ({"": "5000 100000"}, 1),
     ({"a": "300000 100000", "a/b": "100000 100000"}, 1)],
)  # fmt: skip
def test_control_groups_limit_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, str], share: int | None
) -> None:
    for group, limit in limits.items():
        (tmp_path / group).mkdir(exist_ok=True, parents=True)
        (tmp_path / group / "cpu.max").write_text(f"{limit}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("lbr2pgo.support.threads._OWN_GROUP", tmp_path / "own")
    (tmp_path / "own").write_text("3:cpuset:/\n0::/a/b\n")
    assert usable_processors(tmp_path) == (share or 8)


def test_control_groups_of_the_first_version_limit_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long their names are, all together: they are no path."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("lbr2pgo.support.threads._OWN_GROUP", tmp_path / "own")
    (tmp_path / "own").write_text(f"4:cpu:/{'pods/' * 2000}\n3:cpuset:/\n")
    assert usable_processors(tmp_path) == 8
