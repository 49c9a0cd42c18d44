"""What the processor itself counts of a run, by `perf stat`, where it may.

Formats and words are those of `perf stat -x` (perf: tools/perf/Documentation/perf-stat.txt, "CSV
FORMAT"; tools/perf/util/stat-display.c).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.pgo.standard_input import reading

EVENTS = (
    "cycles", "instructions", "branches", "branch-misses", "L1-icache-load-misses",
    "iTLB-load-misses", "stalled-cycles-frontend",
)  # fmt: skip
"""By perf's names for any processor; each counts what it has of them."""
_FIRST_OF_METRICS = 5
"""Columns that every line of an event has."""


@dataclass(frozen=True, slots=True)
class EventCount:
    """Of one run, in user space."""

    value: float
    share: float
    """Of the run in which it was counted; the rest is extrapolated from that (multiplexing)."""


def read_stat(text: str) -> dict[str, EventCount]:
    """Counts by event, of what `perf stat -x,` wrote; what it could not count is left out.

    Of processors with two kinds of cores, counts are sums of both.

    >>> read_stat("5000,,cycles:u,24676893860,85.00,4.224,GHz")
    {'cycles': EventCount(value=5000.0, share=0.85)}
    >>> read_stat("<not supported>,,cycles:u,0,100.00,,")
    {}
    """
    found: dict[str, EventCount] = {}
    for line in text.splitlines():
        columns = line.split(",")
        if len(columns) < _FIRST_OF_METRICS or not columns[0][:1].isdigit():
            continue  # a comment, a metric alone, or `<not counted>`
        name = columns[2].removesuffix(":u")
        if "/" in name:  # cpu_core/cycles/u
            name = name.split("/")[1]
        count = EventCount(float(columns[0]), float(columns[4]) / 100)
        other = found.get(name, EventCount(0.0, 1.0))
        found[name] = EventCount(other.value + count.value, min(other.share, count.share))
    return found


def count_events(
    command: Sequence[str], source: Path | None, events: Sequence[str]
) -> dict[str, EventCount]:
    """Run a command natively; gives counts of those events that could be counted."""
    wanted = (word for event in events for word in ("-e", f"{event}:u"))
    with TemporaryDirectory(prefix="lbr2pgo-") as folder, reading(source) as stdin:
        said = Path(folder) / "stat"
        subprocess.run(
            ["perf", "stat", "-x,", "-o", said, *wanted, "--", *command],
            env={**os.environ, "LC_ALL": "C"},
            stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return read_stat(said.read_text()) if said.exists() else {}


def countable(events: Sequence[str]) -> tuple[str, ...]:
    """Which of some events this machine counts; none without perf, or where it is forbidden."""
    if shutil.which("perf") is None:
        return ()
    # One by one: what perf does not know would fail all of them.
    return tuple(event for event in events if count_events(("true",), None, (event,)))
