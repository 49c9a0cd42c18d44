from __future__ import annotations

from lbr2pgo.counting.made_code import with_made_code
from lbr2pgo.model.address_space_events import Comm, Fork, Mmap, SpaceEvent
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress


def mapped(pid: int, time: int, path: str, *, executable: bool = True) -> Mmap:
    place = RuntimeAddress(0x1000), 0x1000, FileOffset(0)
    return Mmap(pid, pid, time, *place, path, executable=executable)


EXEC, FILE = Comm(7, 7, 5, "node", is_exec=True), mapped(7, 5, "/usr/bin/node")
CODE, LATER = mapped(7, 0, "jit-7.dump"), mapped(7, 8, "jit-7.dump")


def test_it_comes_behind_the_process_and_before_its_files() -> None:
    events: list[SpaceEvent] = [mapped(7, 1, "/bin/sh"), EXEC, FILE, mapped(7, 9, "/lib/libc.so")]
    begun = mapped(7, 5, "jit-7.dump")
    assert with_made_code(events, [CODE, LATER]) == [
        events[0], EXEC, begun, FILE, LATER, events[3]
    ]  # fmt: skip


def test_a_process_whose_beginning_was_not_recorded_has_it_first() -> None:
    assert with_made_code([FILE], [CODE]) == [CODE, FILE]


def test_a_thread_is_no_process_and_a_fork_is_one() -> None:
    thread, process = Fork(7, 7, 8, 6), Fork(7, 3, 7, 4)
    own = mapped(7, 4, "jit-7.dump")
    assert with_made_code([process, FILE, thread], [CODE]) == [process, own, FILE, thread]


def test_its_memory_hides_it_not() -> None:
    names = ("//anon", "/memfd:doublemapper (deleted)", "[heap]", "/dev/zero (deleted)")
    memory: list[SpaceEvent] = [mapped(7, 3, name) for name in names]
    other = mapped(8, 3, "//anon")
    data = mapped(7, 3, "//anon", executable=False)
    assert with_made_code([*memory, other, data], [CODE]) == [CODE, other, data]
