"""A million mappings or processes cost no more than `support.budget` says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import STATIC

from lbr2pgo.support import budget

MANY = 1_000_000
EVENT = Event()
PATH = "/elsewhere/interp.static"
STACK = ((0x22A8DA, 0x22A8C0, 2),) * 2
RUN = """
import re, sys, time
from pathlib import Path
from lbr2pgo.cli import main
code = main(sys.argv[1:])
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(code, int(peak[1]) // 1024, time.process_time())
"""


def anonymous(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, 0x1000, "//anon", EVENT.trailer(10, 10, 2))


def data(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, 0x1000, "/tmp/data", EVENT.trailer(10, 10, 2), protection=3)


def code(pid: int, start: int) -> bytes:
    return build.mmap2(pid, start, 0xA0000, "/lib/other.so", EVENT.trailer(10, 10, 2))


def own(pid: int, start: int) -> bytes:
    """Of the program's file, without its code."""
    return build.mmap2(pid, start, 0x1000, PATH, EVENT.trailer(10, 10, 2))


def memory(one: Callable[[int, int], bytes]) -> bytes:
    """Mappings of one process at a million places."""
    record = np.frombuffer(one(10, 0), np.uint8)
    records = np.tile(record, (MANY, 1))
    starts = 0x7000_0000_0000 + 0x100000 * np.arange(MANY, dtype=np.uint64)
    records[:, 16:24] = starts.view(np.uint8).reshape(MANY, 8)
    return records.tobytes()


def forks() -> bytes:
    """A million processes, all forked from the first."""
    record = np.frombuffer(build.fork(10, 10, 10, 2, EVENT.trailer(10, 10, 2)), np.uint8)
    records = np.tile(record, (MANY, 1))
    pids = (1000 + np.arange(MANY, dtype=np.uint32)).view(np.uint8).reshape(MANY, 4)
    records[:, 8:12] = records[:, 16:20] = pids
    return records.tobytes()


def processes() -> bytes:
    """A million processes, each with the program mapped."""
    record = build.mmap2(10, 0x202000, 0xA0000, PATH, EVENT.trailer(10, 10, 2))
    records = np.tile(np.frombuffer(record, np.uint8), (MANY, 1))
    pids = (1000 + np.arange(MANY, dtype=np.uint32)).view(np.uint8).reshape(MANY, 4)
    records[:, 8:12] = records[:, 12:16] = pids
    return records.tobytes()


def programs() -> bytes:
    """A third of a million processes that run the program."""

    def one(pid: int) -> bytes:
        trailer = EVENT.trailer(pid, pid, 2)
        exec_ = build.comm(pid, pid, "x", trailer, misc=2 | 1 << 13)
        mapped = build.mmap2(pid, 0x202000, 0xA0000, PATH, trailer)
        return build.fork(pid, 10, pid, 2, trailer) + exec_ + mapped

    return b"".join(map(one, range(1000, 1000 + MANY // 3)))


CASES = {
    "anonymous memory": lambda: memory(anonymous),
    "data": lambda: memory(data),
    "libraries": lambda: memory(code),
    "the program's file": lambda: memory(own),
    "processes": processes,
    "forks": forks,
    "programs": programs,
}
FAST = ("anonymous memory", "processes")


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=() if name in FAST else pytest.mark.long) for name in CASES]
)
def test_a_million_take_what_a_small_file_may(case: str, tmp_path: Path) -> None:
    space = build.mmap2(10, 0x202000, 0xA0000, PATH, EVENT.trailer(10, 10, 1))
    samples = b"".join(
        Sample(STACK, pid=10, tid=10, time=10**6 + i).encode(EVENT) for i in range(400)
    )
    outputs = []
    for name, extra in (("few", b""), ("many", CASES[case]())):
        recording, out = tmp_path / name, tmp_path / f"{name}.fdata"
        recording.write_bytes(build.file_form([EVENT], space + extra + samples))
        words = ["convert", recording, "--binary", STATIC, "--fdata", out]
        done = subprocess.run(
            [sys.executable, "-c", RUN, *map(str, words)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        code, megabytes, seconds = done.stdout.splitlines()[-1].split()
        assert code == "0", done.stderr
        assert int(megabytes) << 20 <= budget.BYTES
        assert float(seconds) <= 2 * budget.SECONDS, "twice as long while other tests run"
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1] != b""
