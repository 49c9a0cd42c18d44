"""Firefox Profiler's format: a thread whose samples are stacks, with markers for mispredictions.

Branch stacks have no times, so samples stand one after the other, each as long as it has
instructions (a million of them a second); markers stand at the sample of the code that they are of.
The form is Gecko's, which the profiler brings up to date by itself (perf:
tools/perf/scripts/python/gecko.py; firefox-devtools/profiler: docs-developer/
gecko-profile-format.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from lbr2pgo import __version__
from lbr2pgo.analyses.code_profile import CodeProfile
from lbr2pgo.reports.exports.code import code_of
from lbr2pgo.reports.model import Report
from lbr2pgo.support.addresses import in_file

_VERSION = 24
_PER_MILLISECOND = 1000.0
_CATEGORY = 0
_SAMPLES = ("stack", "time", "responsiveness")
_FRAMES = ("location", "relevantForJS", "innerWindowID", "implementation", "optimizations", "line",
           "column", "category", "subcategory")  # fmt: skip
_STACKS = ("prefix", "frame")
_MARKERS = ("name", "startTime", "endTime", "phase", "category", "data")
_INSTANT = 0
_MISPREDICTION = {
    "name": "Misprediction",
    "tooltipLabel": "{marker.data.count} mispredicted of {marker.data.taken} taken",
    "tableLabel": "{marker.data.place}: {marker.data.count} of {marker.data.taken}",
    "display": ["marker-chart", "marker-table", "timeline-overview"],
    "data": [
        {"key": "place", "label": "Place", "format": "string", "searchable": True},
        {"key": "count", "label": "Mispredicted", "format": "integer"},
        {"key": "taken", "label": "Taken", "format": "integer"},
    ],
}


def as_firefox(report: Report) -> str:
    """The file; raises InputError where the report has no code."""
    code = code_of(report)
    meta = {
        "version": _VERSION,
        "interval": 1,
        "startTime": 0,
        "shutdownTime": None,
        "processType": 0,
        "stackwalk": 1,
        "debug": 0,
        "gcpoison": 0,
        "asyncstack": 1,
        "product": f"lbr2pgo {__version__}",
        "misc": report.title,
        "categories": [{"name": "Code", "color": "orange", "subcategories": ["Other"]}],
        "markerSchema": [_MISPREDICTION],
    }
    whole = {
        "meta": meta,
        "libs": [],
        "threads": [_thread(report, code)],
        "processes": [],
        "pausedRanges": [],
    }
    return json.dumps(whole, separators=(",", ":")) + "\n"


def _thread(report: Report, code: CodeProfile) -> dict[str, object]:
    texts: dict[str, int] = {}
    stacks, leaves = _stack_table(code)
    weight = code.by_stack()["instructions"].tolist()
    times, now = [], 0.0
    for value in weight:
        times.append(now)
        now += value / _PER_MILLISECOND
    frames = [
        [texts.setdefault(_location(code, i), len(texts)), False, 0, None, None,
         code.frames[i].line or None, None, _CATEGORY, 0]
        for i in range(len(code.frames))
    ]  # fmt: skip
    samples = [[leaf, time, 0] for leaf, time in zip(leaves, times, strict=True)]
    markers = [*_markers(code, times, texts)]
    return {
        "name": report.title,
        "processName": report.title,
        "processType": "default",
        "tid": 1,
        "pid": 1,
        "registerTime": 0,
        "unregisterTime": None,
        "markers": {"schema": _schema(_MARKERS), "data": markers},
        "samples": {"schema": _schema(_SAMPLES), "data": samples},
        "frameTable": {"schema": _schema(_FRAMES), "data": frames},
        "stackTable": {"schema": _schema(_STACKS), "data": stacks},
        "stringTable": [*texts],
    }


def _schema(names: tuple[str, ...]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _location(code: CodeProfile, number: int) -> str:
    frame = code.frames[number]
    where = f" ({frame.file}:{frame.line})" if frame.line else ""
    return f"{frame.function or '[unknown]'}{where}"


def _stack_table(code: CodeProfile) -> tuple[list[list[int | None]], list[int]]:
    """Stacks as a tree of (prefix, frame), and where each one ends in it."""
    numbers: dict[tuple[int | None, int], int] = {}
    leaves = []
    for stack in code.stacks:
        prefix: int | None = None
        for frame in stack:
            prefix = numbers.setdefault((prefix, frame), len(numbers))
        leaves.append(prefix or 0)
    return [list(key) for key in numbers], leaves


def _markers(
    code: CodeProfile, times: list[float], texts: dict[str, int]
) -> Iterator[list[object]]:
    name = texts.setdefault("Misprediction", len(texts))
    columns = (code.address, code.mispredictions, code.branches, code.stack)
    for address, missed, taken, stack in zip(*(c.tolist() for c in columns), strict=True):
        if missed:
            place = f"{in_file(address):#x} {_location(code, code.stacks[stack][-1])}"
            data = {"type": "Misprediction", "place": place, "count": missed, "taken": taken}
            yield [name, times[stack], None, _INSTANT, _CATEGORY, data]
