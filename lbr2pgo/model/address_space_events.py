"""What changes an address space, as a source reports it: tuples, since there may be a million."""

from __future__ import annotations

import re
from typing import NamedTuple

from lbr2pgo.support.addresses import LAST_ADDRESS, FileOffset, RuntimeAddress

KERNEL_PID = -1
"""The pid under which perf reports mappings of the kernel and its modules."""

ANY_PID = -1
"""The pid of samples that don't say theirs: they see the mappings of all processes and times, the
later over the earlier."""

_WHOLE = (1 << 63) - 1
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]")
MEMORY = "//"
"""How perf begins the paths of memory that shows no file: `//anon`, `//toolong`."""


def is_file(path: str) -> bool:
    """Whether a program or a library is mapped so, and not the kernel's code or memory."""
    is_path = path.startswith("/") and not path.startswith(MEMORY)
    return is_path or is_windows_path(path)


class Mmap(NamedTuple):
    """From `time` on, `[start, start + length)` of process `pid` shows a file's bytes.

    A later mapping replaces what it overlaps. `executable` is False for data mappings, which
    matter only because they can replace code.
    """

    pid: int
    tid: int
    time: int
    start: RuntimeAddress
    length: int
    file_offset: FileOffset
    path: str
    build_id: str | None = None
    executable: bool = True

    @property
    def end(self) -> RuntimeAddress:
        """First address behind it; of a damaged one that goes on behind the last address, that."""
        return RuntimeAddress(min(self.start + self.length, LAST_ADDRESS))

    @property
    def is_code_of_file(self) -> bool:
        """Whether a program or a library was mapped, and not the kernel's code or memory."""
        return self.executable and self.pid != KERNEL_PID and is_file(self.path)

    @property
    def is_as_linked(self) -> bool:
        """Whether the file's addresses are as it links them (`as_linked`)."""
        return self.start == 0 and self.length == _WHOLE


def as_linked(pid: int, path: str, build_id: str | None) -> Mmap:
    """What stands for a file where a source tells its addresses as the file links them."""
    return Mmap(pid, pid, 0, RuntimeAddress(0), _WHOLE, FileOffset(0), path, build_id)


class Fork(NamedTuple):
    """Process `pid` starts with a copy of its parent's address space (a thread if equal)."""

    pid: int
    parent_pid: int
    tid: int
    time: int


class Comm(NamedTuple):
    """A thread's name changed; by `execve` if `is_exec`, which empties the address space."""

    pid: int
    tid: int
    time: int
    name: str
    is_exec: bool = False


class Exit(NamedTuple):
    """A thread ended (the process, if `pid == tid`)."""

    pid: int
    tid: int
    time: int


_MEMORY_FILES = (MEMORY, "/memfd:", "/anon_hugepage", "/dev/zero", "/SYSV", "[anon", "[heap]")
"""How perf tells of memory (perf: tools/perf/util/map.h, is_anon_memory, is_no_dso_memory)."""


def is_windows_path(path: str) -> bool:
    """Whether a drive leads it."""
    return _WINDOWS_PATH.match(path) is not None


def is_memory(event: Mmap) -> bool:
    """Whether a mapping shows no file but memory, where processes may make code."""
    return event.path.startswith(_MEMORY_FILES)


SpaceEvent = Mmap | Fork | Comm | Exit
