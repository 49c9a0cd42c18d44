"""What a command may leave behind: nothing but its outputs."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # Linux: include/uapi/linux/prctl.h
_DYING = 5.0
"""Seconds for a killed process to be gone, which takes a core that has time for it."""


@contextmanager
def leaving_nothing(spool: Path, folder: Path) -> Iterator[None]:
    """Assert that nothing is left: in `spool`, which is TMPDIR, unfinished below `folder`, running
    below this process, or open in it.

    Orphans of children are given to this process, which sees them then.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    children, files = _children(), _open_files()
    yield
    assert os.listdir(spool) == [], "left in TMPDIR"
    assert list(folder.rglob(".lbr2pgo-*")) == [], "left unfinished"
    assert _stay(children) == set(), "left running"
    if _open_files() - files:
        gc.collect()  # what only waits to be collected is no leak
    assert _open_files() - files == Counter(), "left open"


def _children() -> set[str]:
    """Processes whose parent this is, less those that have ended."""
    tasks = Path("/proc/self/task").glob("*/children")
    pids = {pid for task in tasks for pid in _listed(task)}
    return {pid for pid in pids if not _has_ended(pid)}


def _stay(before: set[str]) -> set[str]:
    """Children that are new and don't end."""
    deadline = time.monotonic() + _DYING
    while (left := _children() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _listed(children: Path) -> list[str]:
    """Those of a thread; none if it has ended since it was found."""
    try:
        return children.read_text().split()
    except OSError:
        return []


def _has_ended(pid: str) -> bool:
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def _open_files() -> Counter[str]:
    """Regular files that are open here, by path; what pytest catches output with has none."""
    found: Counter[str] = Counter()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the listing's own
            continue
        if os.path.isfile(path):
            found[path] += 1
    return found
