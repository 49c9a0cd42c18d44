"""What a native run had in memory when it ended: resident code, and page faults on the way.

The kernel stops the process where it exits (ptrace(2): PTRACE_O_TRACEEXIT), when /proc/PID/smaps
still tells of it (proc(5)). Linux maps pages around each fault that it has in memory already, so
that more is resident than was touched.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import BinaryIO, Literal

from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

MemoryState = Literal["warm", "cold"]
"""Whether the program's file is in the page cache before each run."""
RUNS = 3
_CONT, _SEIZE, _TRACE_EXIT = 7, 0x4206, 1 << 6
_EXITS, _STOPS = 6, 128
"""Events (linux/ptrace.h): PTRACE_EVENT_EXIT and PTRACE_EVENT_STOP."""
_STARTED = ("/bin/sh", "-c", 'kill -STOP $$; exec "$@"', "sh")
"""Waits to be traced before it becomes the program."""
_CODE = re.compile(r"[0-9a-f]+-[0-9a-f]+ r-xp \S+ \S+ \S+ +(.+)")
_RESIDENT = re.compile(r"Rss: +(\d+) kB")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Of a run, or medians of several."""

    resident_code: int
    """Bytes of the program's own code that were in its memory when it ended."""
    page_faults: int
    """Of the process and those that it waited for; minor ones and `from_disk`."""
    from_disk: int
    """Major ones: the kernel had to read."""


def memory_use(
    command: Sequence[str], file: Path, stdin: BinaryIO | None = None, *, cold: bool = False
) -> MemoryUse:
    """Medians of RUNS runs of a command, whose program is a file.

    `cold` drops the file from the page cache before each run, which Linux does if no process has it
    mapped. Raises InputError where the kernel does not let us trace.
    """
    runs = []
    for _ in range(RUNS):
        if cold:
            drop_from_cache(file)
        if stdin is not None:
            stdin.seek(0)
        runs.append(_run(command, file, stdin))
    columns = ("resident_code", "page_faults", "from_disk")
    return MemoryUse(*(int(median(getattr(run, each) for run in runs)) for each in columns))


def drop_from_cache(file: Path) -> None:
    """Drop a file from the page cache, once it is on the disk."""
    with file.open("rb") as stream:
        os.fdatasync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _run(command: Sequence[str], file: Path, stdin: BinaryIO | None) -> MemoryUse:
    process = subprocess.Popen(
        [*_STARTED, *command],
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return _traced(process, file)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()


def _traced(process: subprocess.Popen[bytes], file: Path) -> MemoryUse:
    os.waitpid(process.pid, os.WUNTRACED)
    _ptrace(_SEIZE, process.pid, _TRACE_EXIT)
    os.kill(process.pid, signal.SIGCONT)
    resident = 0
    while True:
        _, status, used = os.wait4(process.pid, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return MemoryUse(resident, used.ru_minflt + used.ru_majflt, used.ru_majflt)
        event = status >> 16
        if event == _EXITS:
            resident = _resident_code(process.pid, file)
        _ptrace(_CONT, process.pid, 0 if event in (_EXITS, _STOPS) else os.WSTOPSIG(status))


def _resident_code(pid: int, file: Path) -> int:
    """Bytes of a process's executable mappings of a file."""
    path, total, is_own = str(file.resolve()), 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text(errors="surrogateescape").splitlines():
        if mapped := _CODE.fullmatch(line):
            is_own = mapped[1] == path
        elif is_own and (size := _RESIDENT.fullmatch(line)):
            total, is_own = total + int(size[1]) * _KIB, False
    return total


def _ptrace(request: int, pid: int, data: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype, call.argtypes = (
        ctypes.c_long,
        [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 2],
    )
    if call(request, pid, None, data) == -1:
        raise InputError(
            f"a run can't be traced: {os.strerror(ctypes.get_errno())}",
            cure="Leave out --memory, or run where ptrace is allowed (kernel.yama.ptrace_scope).",
        )
