"""Firefox Profiler's format: threads whose samples are stacks, with markers for mispredictions.

One thread has call stacks, where they were recorded, one the instructions that ran. Neither have
times here, so samples stand one after the other, each as long as its weight (a million a second);
markers stand at the sample of the code that they are of. The form is the profiler's own
("processed"), which has weights (firefox-devtools/profiler: src/types/profile.js,
docs-developer/CHANGELOG-formats.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lbr2pgo import __version__
from lbr2pgo.analyses.code_profile import CodeProfile
from lbr2pgo.reports.exports.code_frames import UNITS, code_of, name_shown
from lbr2pgo.reports.model import Report
from lbr2pgo.support.addresses import shown

_GECKO_VERSION, _VERSION = 27, 47
_PER_MILLISECOND = 1000.0
_CATEGORY = 0
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
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _VERSION,
        "interval": 1 / _PER_MILLISECOND,
        "startTime": 0,
        "processType": 0,
        "stackwalk": 1,
        "debug": False,
        "symbolicationNotSupported": True,
        "usesOnlyOneStackType": True,
        "product": f"lbr2pgo {__version__}",
        "extensions": {"length": 0, "id": [], "name": [], "baseURL": []},
        "categories": [{"name": "Code", "color": "orange", "subcategories": ["Other"]}],
        "markerSchema": [_MISPREDICTION],
    }
    whole = {"meta": meta, "libs": [], "pages": [], "counters": [], "profilerOverhead": [],
             "threads": [*_threads(report, code)]}  # fmt: skip
    return json.dumps(whole, separators=(",", ":")) + "\n"


def _threads(report: Report, code: CodeProfile) -> Iterator[dict[str, object]]:
    if code.calls is not None:
        stacks = [tuple(code.frames_of(stack)) for stack in code.calls.stacks]
        thread = _Thread(code, stacks, code.calls.count.tolist())
        yield thread.written(report.title, UNITS["samples"], 1)
    weight = code.by_stack()["instructions"].tolist()
    thread = _Thread(code, code.stacks, weight)
    thread.add_mispredictions()
    yield thread.written(report.title, UNITS["instructions"], 2)


@dataclass
class _Thread:
    """Stacks with weights; frames below 0 are files outside."""

    code: CodeProfile
    stacks: Sequence[tuple[int, ...]]
    weight: Sequence[int]
    texts: dict[str, int] = field(default_factory=dict)
    markers: list[tuple[float, dict[str, object]]] = field(default_factory=list)

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def add_mispredictions(self) -> None:
        """A marker for each branch of the code that was mispredicted."""
        code, times = self.code, self._times()
        columns = (code.address, code.mispredictions, code.branches, code.stack)
        for address, missed, taken, stack in zip(*(c.tolist() for c in columns), strict=True):
            if missed:
                frame = code.frames[code.stacks[stack][-1]]
                at = f" ({frame.file}:{frame.line})" if frame.line else ""
                place = f"{shown(address)} {name_shown(frame)}{at}"
                data = {"type": "Misprediction", "place": place, "count": missed, "taken": taken}
                self.markers.append((times[stack], data))

    def _times(self) -> list[float]:
        """When each sample begins, in milliseconds."""
        times, now = [], 0.0
        for value in self.weight:
            times.append(now)
            now += value / _PER_MILLISECOND
        return times

    def written(self, process: str, name: str, number: int) -> dict[str, object]:
        """The thread as the file has it."""
        nodes, leaves = _tree(self.stacks)
        outside = self.code.calls.outside if self.code.calls else ()
        names = [*map(name_shown, self.code.frames), *outside]
        files = [frame.file for frame in self.code.frames] + [""] * len(outside)
        starts = [frame.start_line for frame in self.code.frames] + [0] * len(outside)
        lines = [frame.line for frame in self.code.frames] + [0] * len(outside)
        functions: dict[tuple[str, str, int], int] = {}
        of_frame = [
            functions.setdefault(key, len(functions))
            for key in zip(names, files, starts, strict=True)
        ]
        frames, marks = len(names), len(self.markers)
        texts = [self._text(key[0]) for key in functions]
        paths = [self._text(key[1]) if key[1] else None for key in functions]
        mark = self._text("Misprediction") if marks else 0
        return {
            "name": name,
            "isMainThread": number == 1,
            "processName": process,
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": None,
            "registerTime": 0,
            "unregisterTime": None,
            "pid": "1",
            "tid": number,
            "pausedRanges": [],
            "samples": _table(
                len(leaves), stack=leaves, time=self._times(), weight=[*self.weight]
            ) | {"weightType": "samples"},
            "markers": _table(
                marks, name=[mark] * marks, startTime=[time for time, _ in self.markers],
                endTime=[None] * marks, phase=[_INSTANT] * marks, category=[_CATEGORY] * marks,
                data=[data for _, data in self.markers],
            ),
            "stackTable": _table(
                len(nodes), prefix=[prefix for prefix, _ in nodes],
                frame=[frame if frame >= 0 else frames + frame for _, frame in nodes],
                category=[_CATEGORY] * len(nodes), subcategory=[0] * len(nodes),
            ),
            "frameTable": _table(
                frames, address=[-1] * frames, inlineDepth=[0] * frames,
                category=[_CATEGORY] * frames, subcategory=[0] * frames, func=of_frame,
                nativeSymbol=[None] * frames, innerWindowID=[0] * frames,
                implementation=[None] * frames, line=[line or None for line in lines],
                column=[None] * frames,
            ),
            "funcTable": _table(
                len(functions), name=texts, isJS=[False] * len(functions),
                relevantForJS=[False] * len(functions), resource=[-1] * len(functions),
                fileName=paths, lineNumber=[start or None for _, _, start in functions],
                columnNumber=[None] * len(functions),
            ),
            "resourceTable": _table(0, lib=[], name=[], host=[], type=[]),
            "nativeSymbols": _table(0, libIndex=[], address=[], name=[], functionSize=[]),
            "stringArray": [*self.texts],
        }  # fmt: skip


def _table(length: int, **columns: Sequence[object]) -> dict[str, object]:
    return {"length": length, **columns}


def _tree(
    stacks: Sequence[tuple[int, ...]],
) -> tuple[list[tuple[int | None, int]], list[int | None]]:
    """Stacks as a tree of (prefix, frame), and where each one ends in it."""
    numbers: dict[tuple[int | None, int], int] = {}
    leaves = []
    for stack in stacks:
        prefix: int | None = None
        for frame in stack:
            prefix = numbers.setdefault((prefix, frame), len(numbers))
        leaves.append(prefix)
    return [*numbers], leaves
