"""When samples were taken, and how the functions that ran changed: the phases of a recording."""

from __future__ import annotations

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.counting.activity import Activity
from lbr2pgo.counting.change_points import Phase, phases_of
from lbr2pgo.evidence.time_line import TIME_LINE
from lbr2pgo.support.arrays import U64

NAME = "phases"
TITLE = "Phases, by which functions ran"

_COLUMNS = (
    Column("phase", "phase", Unit.COUNT, FIGURE),
    Column("from_second", "from second", Unit.RATE),
    Column("to_second", "to second", Unit.RATE),
    Column("share", "share", Unit.SHARE, FIGURE),
    Column("samples", "samples", Unit.COUNT, SPARE),
    Column("functions", "leading functions", Unit.TEXT, FIGURE),
    Column("over_time", "samples over time", Unit.TEXT),
    Column("time", "as --time takes it", Unit.TEXT),
)
_UNTIMED = "The recording does not say when its samples were taken."
_HOW = (
    "Seconds count from the first sample. Phases next to each other differ in where about three "
    "samples in ten are; --phase N chooses one."
)
_EIGHTHS = "▁▂▃▄▅▆▇█"
_WIDEST = 48
"""Characters of all lines together."""


def phases(evidence: Evidence, top: int | None = TOP) -> Table:
    """A row for each phase, as time goes."""
    activity, found = evidence.once(found_phases)
    if activity is None:
        return empty(NAME, TITLE, _COLUMNS, *([_UNTIMED] if evidence.limits.has_samples else []))
    lines = _lines(activity, found)
    total = sum(phase.samples for phase in found)
    values: list[list[Value]] = [
        [number for number, _ in enumerate(found, 1)],
        [(phase.time[0] - activity.first) / 1e9 for phase in found],
        [(phase.time[1] - activity.first) / 1e9 for phase in found],
        [phase.samples / total for phase in found],
        [phase.samples for phase in found],
        [leading(evidence, activity, phase) for phase in found],
        [*lines],
        [",".join(map(_seconds, phase.time)) for phase in found],
    ]
    columns = [(column, each[:top]) for column, each in zip(_COLUMNS, values, strict=True)]
    return build(NAME, TITLE, columns, notes=(_HOW,), found=len(found))


def found_phases(evidence: Evidence) -> tuple[Activity | None, tuple[Phase, ...]]:
    """When the samples were taken, and the phases of that; None where nobody can tell."""
    activity = evidence.found(TIME_LINE)
    return activity, () if activity is None else phases_of(activity)


def leading(evidence: Evidence, activity: Activity, phase: Phase) -> str:
    """What a phase is called: `parse 62 % · malloc 20 %`."""
    words = []
    for column, share in phase.leaders:
        function, file = int(activity.function[column]), activity.file[column]
        name = evidence.names.region(function) if function >= 0 else file
        words.append(f"{name} {share:.0%}".replace("%", " %"))
    return " · ".join(words)


def _seconds(time: int) -> str:
    return f"{time // 10**9}.{time % 10**9:09}"


def _lines(activity: Activity, found: tuple[Phase, ...]) -> list[str]:
    """Of each phase its part of one line, whose height is samples in equal spans of time."""
    samples = activity.samples.sum(1)
    step = -(-len(samples) // _WIDEST)
    parts = [samples[a:b] for a, b in (phase.slices for phase in found)]
    heights = [[_height(part[i : i + step]) for i in range(0, len(part), step)] for part in parts]
    most = max(max(each) for each in heights)
    return ["".join(_EIGHTHS[round(7 * h / most)] for h in each) for each in heights]


def _height(samples: U64) -> float:
    return float(samples.mean())
