"""What the processor itself counts of a run, by `perf stat`, where it may.

Formats and words are those of `perf stat -x` (perf: tools/perf/Documentation/perf-stat.txt, "CSV
FORMAT"; tools/perf/util/stat-display.c).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.pgo.standard_input import reading

EVENTS = (
    ("cycles",), ("instructions",), ("branches",), ("branch-misses",), ("L1-icache-load-misses",),
    ("iTLB-load-misses",),
    ("stalled-cycles-frontend", "idq_uops_not_delivered.core", "idq_bubbles.core"),
)  # fmt: skip
"""By perf's names, the first of each that the processor counts.

The front end's is AMD's and Arm's; Intel's processors have had none of that name since 2013, but
slots that the front end left empty (perf: tools/perf/pmu-events/arch/x86).
"""
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

    Each of two kinds of cores counts while the program runs on it, and perf extrapolates that to
    the whole run: the mean by these times is what both have counted together.

    >>> read_stat("5000,,cycles:u,24676893860,85.00,4.224,GHz")
    {'cycles': EventCount(value=5000.0, share=0.85)}
    >>> read_stat("<not supported>,,cycles:u,0,100.00,,")
    {}
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    for line in text.splitlines():
        columns = line.split(",")
        if len(columns) < _FIRST_OF_METRICS or not columns[0][:1].isdigit():
            continue  # a comment, a metric alone, or `<not counted>`
        value, time, share = (float(columns[at]) for at in (0, 3, 4))
        found.setdefault(_event(columns[2]), []).append((value, time, share / 100))
    return {name: _together(rows) for name, rows in found.items()}


def _event(name: str) -> str:
    """Without its kind of core and `u`: of cycles:u, cpu_core/cycles/u and cpu_core/cycles:u/."""
    return (name.split("/")[1] if "/" in name else name).removesuffix(":u")


def _together(rows: Sequence[tuple[float, float, float]]) -> EventCount:
    total = sum(time for _, time, _ in rows)
    value = sum(value * time for value, time, _ in rows) / total if total else 0.0
    return EventCount(value, min(1.0, sum(share for _, _, share in rows)))


def count_events(
    command: Sequence[str], source: Path | None, events: Sequence[str]
) -> dict[str, EventCount]:
    """Run a command natively; gives counts of those events that could be counted."""
    return read_stat(_stat(command, source, events)[0])


def _stat(command: Sequence[str], source: Path | None, events: Sequence[str]) -> tuple[str, str]:
    """What perf wrote, and what it and the command said."""
    wanted = (word for event in events for word in ("-e", f"{event}:u"))
    with TemporaryDirectory(prefix="lbr2pgo-") as folder, reading(source) as stdin:
        written, said = Path(folder) / "stat", Path(folder) / "said"
        with said.open("wb") as stderr:
            subprocess.run(
                ["perf", "stat", "-x,", "-o", written, *wanted, "--", *command],
                env={**os.environ, "LC_ALL": "C"},
                stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip
        texts = (each.read_text(errors="replace") if each.exists() else ""
                 for each in (written, said))  # fmt: skip
        return next(texts), next(texts)


@dataclass(frozen=True, slots=True)
class Countable:
    """Events that this machine counts."""

    events: tuple[str, ...]
    refusal: str = ""
    """Why there are none."""


def countable(events: Sequence[Sequence[str]]) -> Countable:
    """The first of each that this machine counts."""
    if shutil.which("perf") is None:
        return Countable((), "perf is not installed")
    # One by one: what perf does not know would fail all of them.
    found = [
        next((each for each in names if count_events(("true",), None, (each,))), None)
        for names in events
    ]
    counted = tuple(filter(None, found))
    return Countable(counted, "" if counted else refusal(*_stat(("true",), None, events[0][:1])))


_PARANOID = re.compile(r"perf_event_paranoid setting is (-?\d+)|The current value is (-?\d+)")
_BARS_USERS = 3
"""Levels of perf_event_paranoid, of distributions' own, from which users may count nothing."""


def refusal(written: str, said: str) -> str:
    """Why perf counted nothing, by what it wrote of an event and said (util/evsel.c)."""
    level = _PARANOID.search(said)
    if level is not None and int(level[1] or level[2]) >= _BARS_USERS:
        return (
            f"kernel.perf_event_paranoid is {level[1] or level[2]}, which bars you from counting "
            "(sudo sysctl kernel.perf_event_paranoid=2)"
        )
    if level is not None or "No permission" in said:
        return "perf has no permission: does a container or a security module forbid it?"
    mark = re.search(r"<not \w+>", written)
    if mark is not None:
        return f"perf says {mark[0]}: a virtual machine may have no counters"
    lines = [line for line in said.splitlines() if line.strip() not in ("", "Error:")]
    return f"perf says: {lines[0].strip()}" if lines else "perf says nothing"
