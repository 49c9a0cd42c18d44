"""Records of very many mappings and processes, and a recording of few samples around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import STATIC_ENTRY

_EVENT = Event()
_PATH = "/elsewhere/interp.static"
_LENGTH = 0xA0000
"""Of the program's code."""

Records = Callable[[int], bytes]
"""As many as are asked for."""


def _anonymous(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, 0x1000, "//anon", _EVENT.trailer(10, 10, 2))


def _data(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, 0x1000, "/tmp/data", _EVENT.trailer(10, 10, 2), protection=3)


def _code(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, _LENGTH, "/lib/other.so", _EVENT.trailer(10, 10, 2))


def _own(pid: int, start: int) -> bytes:
    """Of the program's file, without its code."""
    return build.mmap2(pid, start, 0x1000, _PATH, _EVENT.trailer(10, 10, 2))


def _memory(one: Callable[[int, int], bytes], count: int) -> bytes:
    """Mappings of one process, each at its place."""
    records = np.tile(np.frombuffer(one(10, 0), np.uint8), (count, 1))
    starts = 0x7000_0000_0000 + 0x100000 * np.arange(count, dtype=np.uint64)
    records[:, 16:24] = starts.view(np.uint8).reshape(count, 8)
    return records.tobytes()


def _pids(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return (1000 + np.arange(count, dtype=np.uint32)).view(np.uint8).reshape(count, 4)


def _forks(count: int) -> bytes:
    """Processes that are all forked from the first."""
    record = np.frombuffer(build.fork(10, 10, 10, 2, _EVENT.trailer(10, 10, 2)), np.uint8)
    records = np.tile(record, (count, 1))
    records[:, 8:12] = records[:, 16:20] = _pids(count)
    return records.tobytes()


def _processes(count: int) -> bytes:
    """Processes that each have the program mapped."""
    record = build.mmap2(10, 0x202000, _LENGTH, _PATH, _EVENT.trailer(10, 10, 2))
    records = np.tile(np.frombuffer(record, np.uint8), (count, 1))
    records[:, 8:12] = records[:, 12:16] = _pids(count)
    return records.tobytes()


def _programs(count: int) -> bytes:
    """Processes that run the program, of three records each."""

    def one(pid: int) -> bytes:
        trailer = _EVENT.trailer(pid, pid, 2)
        exec_ = build.comm(pid, pid, "x", trailer, misc=2 | 1 << 13)
        mapped = build.mmap2(pid, 0x202000, _LENGTH, _PATH, trailer)
        return build.fork(pid, 10, pid, 2, trailer) + exec_ + mapped

    return b"".join(map(one, range(1000, 1000 + count // 3)))


MANY_MAPPINGS: dict[str, Records] = {
    "anonymous memory": partial(_memory, _anonymous),
    "data": partial(_memory, _data),
    "libraries": partial(_memory, _code),
    "the program's file": partial(_memory, _own),
    "processes": _processes,
    "forks": _forks,
    "programs": _programs,
}
FAST = ("anonymous memory", "processes")
"""Those that every run of the tests tries."""


def among_samples(records: bytes) -> bytes:
    """A perf.data of the static program: the records, then 400 samples of one process."""
    space = build.mmap2(10, 0x202000, _LENGTH, _PATH, _EVENT.trailer(10, 10, 1))
    stack = (STATIC_ENTRY,) * 2
    samples = (Sample(stack, pid=10, tid=10, time=10**6 + i).encode(_EVENT) for i in range(400))
    return build.file_form([_EVENT], space + records + b"".join(samples))
