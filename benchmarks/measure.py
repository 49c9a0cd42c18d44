"""Runs a command and says what it cost."""

from __future__ import annotations

import subprocess
import sys
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


_MEASURED = """
import os, sys, time
start = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
wall = time.perf_counter() - start
print("\\n", wall, used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(status != 0)
"""
"""A program of its own, since what it runs begins with its peak of memory: ours is much larger."""


def run(command: Sequence[str]) -> Cost:
    """Run a command to its end; raises CalledProcessError if it fails."""
    wrapped = [sys.executable, "-I", "-S", "-c", _MEASURED, *command]
    done = subprocess.run(wrapped, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    wall, cpu, peak = map(float, done.stderr.splitlines()[-1].split())
    return Cost(wall, cpu, peak / 1024)


def medians(costs: Sequence[Cost]) -> Cost:
    """The median of each number by itself."""
    return Cost(
        median(cost.wall for cost in costs),
        median(cost.cpu for cost in costs),
        median(cost.peak for cost in costs),
    )
