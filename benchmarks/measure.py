"""Runs a command and says what it cost."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took; processes that the command started are part of it."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system."""
    peak: float
    """MB, of the largest process."""


def run(command: Sequence[str]) -> Cost:
    """Run a command to its end; raises CalledProcessError if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=said)
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def medians(costs: Sequence[Cost]) -> Cost:
    """The median of each number by itself."""
    return Cost(
        median(cost.wall for cost in costs),
        median(cost.cpu for cost in costs),
        median(cost.peak for cost in costs),
    )
