"""Events of address spaces in columns: they come back, and what can't matter is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import AddressSpaces, Pieces
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.space_event_log import SpaceEventLog, of_code
from lbr2pgo.program.elf.layout import ImageLayout, Segment

NUMBERS = st.integers(0, 2**64 - 1)
PIDS = st.integers(-1, 2**31 - 1)
NAMES = st.sampled_from(["", "/bin/a", "/lib/b", "//anon", "[heap]"])
ANY_EVENT = st.one_of(
    st.builds(Mmap, PIDS, PIDS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NAMES,
              st.none() | st.sampled_from(["aa", "bb"]), st.booleans()),
    st.builds(Fork, PIDS, PIDS, PIDS, NUMBERS),
    st.builds(Comm, PIDS, PIDS, NUMBERS, NAMES, st.booleans()),
    st.builds(Exit, PIDS, PIDS, NUMBERS),
)  # fmt: skip


@given(st.lists(ANY_EVENT))
@example([Fork(-1, -1, -1, 0), Comm(-1, -1, 0, ""), Exit(-1, -1, 0)])
def test_events_come_back_in_the_order_of_their_times(events: list[SpaceEvent]) -> None:
    log = SpaceEventLog(events)
    expected = sorted(events, key=lambda event: event.time)
    assert list(log) == expected
    assert [log[i] for i in range(len(log))] == expected
    assert list(log[1:]) == expected[1:]
    assert log == SpaceEventLog(events)


def mapped(start: int, size: int, path: str, *, pid: int = 7, executable: bool = True) -> Mmap:
    return Mmap(pid, pid, 0, start, size, 0, path, None, executable)


def kept(*events: Mmap) -> list[Mmap]:
    return list(of_code(SpaceEventLog(events)))  # type: ignore[arg-type]


def test_memory_that_lies_over_no_code_is_left_out() -> None:
    code = mapped(100, 50, "/bin/a")
    first, over = mapped(500, 10, "//anon"), mapped(149, 10, "//anon")
    data, beside = (mapped(at, 10, "/tmp/data", executable=False) for at in (150, 90))
    assert kept(code, first, over, mapped(600, 10, "//anon"), data, beside) == [
        code, first, over, data,
    ]  # fmt: skip


def test_code_of_files_stays_whatever_it_lies_over() -> None:
    events = [mapped(at, 10, "/lib/b") for at in (0, 5, 100)]
    assert kept(*events) == events


def test_damaged_mappings_that_go_on_behind_the_last_address_touch_all_up_to_it() -> None:
    endless = mapped(2**64 - 100, 2**64 - 1, "/bin/a")
    memory = [mapped(at, 1, "//anon") for at in (0, 1, 2**64 - 2)]
    assert kept(endless, *memory) == [endless, memory[0], memory[2]]


LAYOUT = ImageLayout("/bin/a", None, "x86-64", True, (Segment(0, 0, 40, 40, True),))
SMALL = st.integers(0, 90)
SMALL_EVENT = st.one_of(
    st.builds(Mmap, st.integers(1, 3), st.just(1), SMALL, SMALL, SMALL, st.just(0),
              st.sampled_from(["/bin/a", "/lib/b", "//anon"]), st.none(), st.booleans()),
    st.builds(Fork, st.integers(1, 3), st.integers(1, 3), st.just(1), SMALL),
    st.builds(Comm, st.integers(1, 3), st.just(1), SMALL, st.just("a"), st.booleans()),
)  # fmt: skip


@given(st.lists(SMALL_EVENT, max_size=12))
def test_what_is_left_out_changes_no_address_space(events: list[SpaceEvent]) -> None:
    pids, times = np.mgrid[-1:4, 0:100].reshape(2, -1)

    def spaces(chosen: Sequence[SpaceEvent]) -> list[Pieces]:
        found = AddressSpaces(chosen, LAYOUT, ImageMatch(("/bin/a",), "path"))
        seen = found.spaces_of(pids.astype(np.int32), times.astype(np.uint64))
        return [found.pieces[space] if space >= 0 else () for space in seen.tolist()]

    log = SpaceEventLog(events)
    assert spaces(of_code(log)) == spaces(log) == spaces(list(log))


def programs(events: list[SpaceEvent]) -> list[Mmap]:
    """The first file of code that each process mapped after `execve`, one event after the other."""
    found: dict[tuple[str, str | None], Mmap] = {}
    has_started: set[int] = set()
    for event in sorted(events, key=lambda event: event.time):
        if isinstance(event, Comm) and event.is_exec:
            has_started.discard(event.pid)
        elif isinstance(event, Mmap) and event.is_code_of_file and event.pid not in has_started:
            has_started.add(event.pid)
            found.setdefault((event.path, event.build_id), event)
    return [*found.values()]


FEW_EVENTS = st.one_of(
    st.builds(Mmap, st.integers(-1, 2), PIDS, st.integers(0, 9), NUMBERS, NUMBERS, NUMBERS, NAMES,
              st.none() | st.sampled_from(["aa", "bb"]), st.booleans()),
    st.builds(Comm, st.integers(-1, 2), PIDS, st.integers(0, 9), NAMES, st.booleans()),
    st.builds(Fork, st.integers(-1, 2), PIDS, PIDS, st.integers(0, 9)),
)  # fmt: skip


@given(st.lists(FEW_EVENTS))
def test_programs_are_what_processes_began_with(events: list[SpaceEvent]) -> None:
    assert list(SpaceEventLog(events).programs) == programs(events)
