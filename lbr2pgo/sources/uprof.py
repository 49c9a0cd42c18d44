"""Reports of AMD uProf: `AMDuProfCLI report --detail` of a recording with `--branch-filter`.

The report is CSV with titled sections. Branches stand in a summary of the hottest ones and, with
--detail, in a section for each process; columns are found by name. They name functions and source
lines, and no addresses (AMD: uProf User Guide 57368, Profile Report; Analyze the Data).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from lbr2pgo.model.doubts import Doubt
from lbr2pgo.model.line_branches import TEXT_COLUMNS, LineBranches
from lbr2pgo.sources.base import ShownShortly, Sniff, SourceFormat, SourceInfo
from lbr2pgo.sources.csv_text import CsvRow, normal, number_of, places_of, read_rows, rows_of
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.sums import refuse_too_many

_NAMES = {
    "samples": ("samples", "sample count", "samples count"),
    "misses": ("mispredict count", "mispredicted count", "mispredicts"),
    "miss_percent": ("mispredict (%)", "mispredict(%)", "mispredict %"),
    **{column: (column.replace("_", " "),) for column in TEXT_COLUMNS},
}
_NEEDED = ("samples", "source_function", "target_function")
_BANNER = "amd uprof"
_PER_PROCESS = "for process"
_SHORT = Doubt("damaged: rows of branches that are too short")
_NO_NUMBER = Doubt("damaged: rows of branches whose numbers can't be read")


@dataclass(frozen=True, slots=True)
class _Section:
    """One table of branches."""

    title: str
    places: Mapping[str, int]
    rows: list[CsvRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Report:
    """A report, cut into what matters of it."""

    sections: tuple[_Section, ...]
    facts: Mapping[str, str]


class UprofReport(ShownShortly):
    """A `LineSource` over a report; raises InputError if it has no table of branches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._report = _cut(path)
        self._health: Counter[str] = Counter()

    @property
    def info(self) -> SourceInfo:
        """What the report says of the recording before its first table."""
        details = {"recorder": "AMD uProf", "cpuid": "AuthenticAMD", **self._report.facts}
        return SourceInfo(str(self._path), FORMAT.name, details=details)

    def line_branches(self) -> LineBranches:
        """Branches of all processes; of the summary where there are no details."""
        return self._branches

    def health(self) -> Mapping[str, int]:
        """Rows that can't be read."""
        self.line_branches()
        return dict(+self._health)

    @cached_property
    def _branches(self) -> LineBranches:
        detailed = [s for s in self._report.sections if _PER_PROCESS in normal(s.title)]
        # A summary repeats what the details hold.
        chosen = detailed or list(self._report.sections[:1])
        rows = [row for section in chosen for row in self._rows(section)]
        says_misses = any({"misses", "miss_percent"} & s.places.keys() for s in chosen)
        texts = {name: tuple(row[0].get(name, "") for row in rows) for name in TEXT_COLUMNS}
        samples = np.array([row[1] for row in rows], np.int64)
        refuse_too_many(samples.view(np.uint64))
        return LineBranches(
            **texts,
            samples=samples,
            mispredicted=np.array([row[2] for row in rows], np.int64) if says_misses else None,
        )

    def _rows(self, section: _Section) -> Iterator[tuple[dict[str, str], int, int]]:
        """Texts, samples and mispredictions of each row that can be read."""
        for row in section.rows:
            if len(row.cells) <= max(section.places[name] for name in _NEEDED):
                self._health[_SHORT] += 1
                continue
            cells = {n: row.cells[i] for n, i in section.places.items() if i < len(row.cells)}
            samples, misses = number_of(cells["samples"]), _misses(cells)
            if samples is None or misses is None:
                self._health[_NO_NUMBER] += 1
                continue
            cells.setdefault("process", _process_of(section.title))
            yield cells, round(samples), min(round(misses), round(samples))


def _misses(cells: Mapping[str, str]) -> float | None:
    """Mispredictions, from their share where only that is given; 0 where nothing is."""
    if "misses" in cells:
        return number_of(cells["misses"])
    share, samples = number_of(cells.get("miss_percent", "0")), number_of(cells["samples"])
    return None if share is None or samples is None else share * samples / 100


def _process_of(title: str) -> str:
    """`a.out (PID - 7)` of `LAST BRANCH RECORD FOR PROCESS a.out (PID - 7)`."""
    at = title.lower().find(_PER_PROCESS)
    return title[at + len(_PER_PROCESS) :].strip(" :-") if at >= 0 else ""


def _header_places(row: CsvRow) -> dict[str, int] | None:
    """Places of the columns if this is the header of a table of branches."""
    places = places_of(row, _NAMES)
    return places if all(name in places for name in _NEEDED) else None


def _cut(path: Path) -> _Report:
    sections: list[_Section] = []
    facts: dict[str, str] = {}
    title, current = "", None
    for row in read_rows(path):
        filled = row.filled
        places = _header_places(row)
        if places is not None:
            current = _Section(title, places)
            sections.append(current)
        elif len(filled) <= 1:
            title, current = (filled[0] if filled else title), None
        elif current is not None:
            current.rows.append(row)
        elif not sections and len(filled) == 2 and filled[0] == row.cells[0]:
            facts[filled[0].rstrip(": ").lower()] = filled[1]
    if not sections:
        raise InputError(
            "holds no table of branches",
            where=str(path),
            cure="Record with AMDuProfCLI collect --branch-filter and report with --detail: a "
            "section must have the columns SAMPLES, SOURCE FUNCTION and TARGET FUNCTION.",
        )
    return _Report(tuple(sections), facts)


def sniff(head: bytes) -> Sniff:
    """Recognise a report by its first line, or by the header of a table of branches."""
    text = head.decode("utf-8-sig", "replace")
    if b"\0" in head or "," not in text:
        is_start = text.strip(' "').lower().startswith(_BANNER)
        return Sniff.YES if is_start and b"\0" not in head else Sniff.NO
    if text.lstrip(' "\r\n').lower().startswith(_BANNER):
        return Sniff.YES
    try:
        found = any(_header_places(row) is not None for row in rows_of(text))
    except InputError:
        return Sniff.NO
    return Sniff.YES if found else Sniff.NO


FORMAT = SourceFormat(
    name="AMD uProf report",
    summary="CSV of AMDuProfCLI report --detail: branches by source line, for report alone",
    references=("AMD: uProf User Guide (57368), Profile Report; Branch Analysis",),
    sniff=sniff,
    open=UprofReport,
    has_addresses=False,
)
