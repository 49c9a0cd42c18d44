from __future__ import annotations

import contextlib

import pytest

from lbr2pgo.support import timings
from lbr2pgo.support.timings import Timings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [50.0]
    monkeypatch.setattr(timings, "perf_counter", lambda: now[0])
    return now


def test_stages_add_up_in_the_order_of_their_first_use(clock: list[float]) -> None:
    times = Timings()
    for name, seconds, size in (("read", 1.5, 4_000_000), ("write", 0.25, 0), ("read", 0.5, 100)):
        with times.stage(name, size):
            clock[0] += seconds
    assert times.seconds == {"read": 2.0, "write": 0.25}
    assert times.bytes == {"read": 4_000_100, "write": 0}
    read, write, everything = times.lines()
    assert read.split() == ["read", "2.000", "s", "4.0", "MB"]
    assert write.split() == ["write", "0.250", "s"]
    assert everything.split() == ["all", "stages", "2.250", "s"]


def test_a_stage_that_fails_is_timed_too(clock: list[float]) -> None:
    times = Timings()
    with contextlib.suppress(KeyError), times.stage("read"):
        clock[0] += 3
        raise KeyError
    assert times.seconds == {"read": 3.0}


def test_no_stage_at_all() -> None:
    assert [line.split() for line in Timings().lines()] == [["all", "stages", "0.000", "s"]]


def test_who_watches_is_told_when_a_stage_begins() -> None:
    seen: list[tuple[str, int]] = []
    times = Timings(lambda *stage: seen.append(stage))
    for stage in (("read", 10), ("write", 0), ("read", 20)):
        with times.stage(*stage):
            assert seen[-1] == stage
    assert seen == [("read", 10), ("write", 0), ("read", 20)]
