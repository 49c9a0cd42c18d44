"""What each process had mapped, against a replay of one event after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from lbr2pgo.counting.mapping_history import NONE, MappingHistory
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress

PIDS, TIMES = st.integers(-1, 4), st.integers(0, 5)
EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda pid, time, path, wanted: Mmap(
                pid, pid, time, RuntimeAddress(0), 1, FileOffset(0), path, None, wanted
            ),
            PIDS, TIMES, st.sampled_from(["/a", "/b"]), st.booleans(),
        ),
        st.builds(lambda pid, parent, time: Fork(pid, parent, pid, time), PIDS, PIDS, TIMES),
        st.builds(lambda pid, time, is_exec: Comm(pid, pid, time, "x", is_exec),
                  PIDS, TIMES, st.booleans()),
        st.builds(lambda pid, time: Exit(pid, pid, time), PIDS, TIMES),
    ),
    max_size=15,
)  # fmt: skip
CODE = Mmap(1, 1, 1, RuntimeAddress(0), 1, FileOffset(0), "/a")


def history(events: Sequence[SpaceEvent]) -> tuple[MappingHistory, list[SpaceEvent]]:
    """Of mappings of code; and the events in their order."""
    log = SpaceEventLog(events)
    return MappingHistory(log, log.are_code), list(log)


def chains(events: list[SpaceEvent]) -> list[dict[int, list[int]]]:
    """After each event, the mappings of each process."""
    now: dict[int, list[int]] = {}
    after = []
    for number, event in enumerate(events):
        mine = now.get(event.pid, [])
        if isinstance(event, Mmap) and event.executable:
            mine = [*mine, number]
        elif isinstance(event, Fork) and event.pid != event.parent_pid:
            mine = now.get(event.parent_pid, [])
        elif isinstance(event, Comm) and event.is_exec:
            mine = []
        now = {**now, event.pid: mine}
        after.append(now)
    return after


def at(events: list[SpaceEvent], pid: int, time: int) -> list[int]:
    known: list[int] = []
    for event, after in zip(events, chains(events), strict=True):
        if event.time <= time:
            known = after.get(pid, [])
    return known


def programs(events: list[SpaceEvent], pid: int) -> list[tuple[int, list[int]]]:
    """From when on which mappings are those of a process's program, when it ended."""
    found: list[tuple[int, list[int]]] = [(0, [])]
    has_begun = False
    for event, after in zip(events, chains(events), strict=True):
        if event.pid != pid:
            continue
        is_thread = isinstance(event, Fork) and event.pid == event.parent_pid
        is_new = (isinstance(event, Fork) and not is_thread) or getattr(event, "is_exec", False)
        if is_new and has_begun:
            found.append((event.time, []))
        found[-1] = found[-1][0], after[pid]
        has_begun |= is_new or (isinstance(event, Mmap) and event.executable)
    return found


@given(EVENTS)
def test_what_a_process_had_mapped_at_a_time(drawn: list[SpaceEvent]) -> None:
    found, events = history(drawn)
    timeline = found.timeline()
    pids, times = np.mgrid[-1:6, 0:7].reshape(2, -1)
    last = timeline.at(pids.astype(np.int32), times.astype(np.uint64))
    for pid, time, mapping in zip(pids.tolist(), times.tolist(), last.tolist(), strict=True):
        expected = at(events, pid, time)
        assert found.up_to(mapping, 99) == expected
        assert found.up_to(mapping, 2) == expected[-2:]
        if expected:
            assert found.length[mapping] == len(expected)


@given(EVENTS)
@example([Fork(1, 0, 1, 0), Comm(1, 1, 1, "x", True), CODE])
def test_what_a_program_will_have_mapped(drawn: list[SpaceEvent]) -> None:
    found, events = history(drawn)
    times = np.arange(7, dtype=np.uint64)
    for pid in range(-1, 6):
        told = programs(events, pid)
        last = found.of_programs().at(np.full(7, pid, np.int32), times)
        for time, mapping in enumerate(last.tolist()):
            expected = [each for since, each in told if since <= time][-1]
            assert found.up_to(mapping, 99) == expected


@given(EVENTS)
def test_mappings_that_cover_nothing_are_left_out(drawn: list[SpaceEvent]) -> None:
    log = SpaceEventLog(drawn)
    shows = log.are_code_of(["/b"])
    every, found = MappingHistory(log, log.are_code), MappingHistory(log, log.are_code, shows)
    pids, times = np.mgrid[-1:6, 0:7].reshape(2, -1)
    asked = pids.astype(np.int32), times.astype(np.uint64)
    ends = (each.timeline().at(*asked).tolist() for each in (found, every))
    for last, mapping in zip(*ends, strict=True):
        chain = every.up_to(mapping, 99)
        first = next((i for i, each in enumerate(chain) if shows[each]), len(chain))
        assert found.up_to(last, 99) == chain[first:]


def test_times_may_be_as_large_as_they_get() -> None:
    last = (1 << 64) - 1
    mapping = Mmap(1, 1, last, RuntimeAddress(0), 1, FileOffset(0), "/a")
    found, _ = history([mapping])
    times = np.array([last, last - 1, 0], np.uint64)
    assert found.timeline().at(np.ones(3, np.int32), times).tolist() == [0, NONE, NONE]
