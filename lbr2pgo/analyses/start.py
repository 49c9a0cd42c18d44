"""What code a start touches: its pages as time goes, and functions that never run again."""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.analyses.touched_pages import (
    PAGE,
    CodeSections,
    SeenEnds,
    TouchedPages,
    code_sections,
    page_of,
    seen_ends,
    touched_pages,
)
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.first_times import FIRST_TIMES, FirstTimes
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct

NAME = "start"
PARTS = ("pages", "functions")
_ALIGNED = 16
"""Where linkers put functions."""
_EARLY = 0.25
"""The part of a process's time that is early."""
_EIGHTHS = "▁▂▃▄▅▆▇█"
_WIDEST = 24
"""Characters of a line."""
_MOMENTS, _LINES = 200, 8
"""Of a picture."""

_FILE = Column("file", "file", Unit.TEXT, FIGURE)
_SECTION = Column("section", "section", Unit.TEXT, FIGURE)
_OF_SECTIONS = (
    _FILE,
    _SECTION,
    Column("pages", "pages that ran", Unit.COUNT, FIGURE),
    Column("of", "of so many", Unit.COUNT),
    Column("together", "together", Unit.COUNT, FIGURE),
    Column("half_ms", "half after ms", Unit.RATE),
    Column("last_ms", "last after ms", Unit.RATE),
    Column("over_time", "pages over time", Unit.TEXT),
)
_OF_PAGES = (
    Column("ms", "after ms", Unit.RATE, FIGURE),
    _FILE,
    _SECTION,
    Column("page", "page", Unit.ADDRESS, FIGURE),
    Column("function", "first function", Unit.FUNCTION, FIGURE),
)
_OF_FUNCTIONS = (
    Column("function", "function", Unit.FUNCTION, FIGURE),
    _FILE,
    Column("address", "address", Unit.ADDRESS),
    Column("bytes", "bytes", Unit.COUNT, FIGURE),
    Column("first_ms", "first after ms", Unit.RATE, SPARE),
    Column("last_ms", "last after ms", Unit.RATE, FIGURE),
)
_SECTIONS = NAME, "Pages of code that ran, as time goes", _OF_SECTIONS
_PAGES = f"{NAME}-pages", "Pages of code in the order in which they ran", _OF_PAGES
_FUNCTIONS = f"{NAME}-functions", "Functions that ran early and never again", _OF_FUNCTIONS

_SPARSE = "Which pages a start touches, recordings of every branch tell: lbr2pgo record --startup."
_HOW = (
    "Pages are of 4 KiB. Times are of a process, from its first sample on; of several processes "
    "the earliest counts. `together` is how many would do if the functions that ran stood side by "
    "side, as --startup-order has them."
)
_AGAIN = (
    f"They ran in the first {_EARLY:.0%} of the recorded time of their processes, and not after."
)


def first_times(evidence: Evidence, _: int | None) -> Finding[FirstTimes] | None:
    """What it asks the samples for: nothing where they can't tell."""
    return FIRST_TIMES if evidence.limits.is_dense else None


def start(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """A row for each section; all pages in the order in which they ran; what ran early alone."""
    found = evidence.once(_found)
    if found is None:
        notes = (_SPARSE,) if evidence.limits.has_samples else ()
        return empty(*_SECTIONS, *notes), empty(*_PAGES), empty(*_FUNCTIONS)
    seen, sections, pages = found
    return (
        _by_section(evidence, pages, sections, top),
        _by_page(evidence, pages, sections, top),
        _never_again(evidence, seen, sections, top),
    )


def _found(evidence: Evidence) -> tuple[SeenEnds, CodeSections, TouchedPages] | None:
    times = evidence.found(FIRST_TIMES) if evidence.limits.is_dense else None
    if times is None or not len(times):
        return None
    seen, sections = seen_ends(times), code_sections(evidence.program)
    return seen, sections, touched_pages(evidence, seen, sections)


@dataclass(frozen=True, slots=True)
class StartPicture:
    """How many pages had run by each moment, for a chart."""

    ms: tuple[float, ...]
    """Moments at equal distances."""
    lines: tuple[tuple[str, tuple[int, ...]], ...]
    """Of each section its name, and its pages by these moments; those with most pages first."""


def start_picture(evidence: Evidence) -> StartPicture | None:
    """The picture of a start, None where samples don't tell."""
    found = evidence.once(_found)
    if found is None:
        return None
    _, sections, pages = found
    moments = np.linspace(0, float(pages.since.max(initial=0)), _MOMENTS)
    numbers, counts = np.unique(pages.section, return_counts=True)
    lines = []
    for section in numbers[np.argsort(-counts, kind="stable")][:_LINES].tolist():
        since = np.sort(pages.since[pages.section == section])
        ran = np.searchsorted(since, moments, side="right")
        lines.append((" ".join(sections.names[section]).rstrip(), tuple(ran.tolist())))
    return StartPicture(tuple(moments.tolist()), tuple(lines))


def _by_section(
    evidence: Evidence, pages: TouchedPages, sections: CodeSections, top: int | None
) -> Table:
    together = _together(evidence, sections)
    whole = float(pages.since.max(initial=0))
    rows: list[tuple[Value, ...]] = []
    for section in distinct(pages.section).tolist():
        since = np.sort(pages.since[pages.section == section])
        rows.append((
            *sections.names[section], len(since), sections.pages(section) or None,
            min(int(together[section]), len(since)), float(since[(len(since) - 1) // 2]),
            float(since[-1]), _line(since, whole),
        ))  # fmt: skip
    rows.sort(key=lambda row: -int(row[2] or 0))
    return Table(*_SECTIONS, tuple(rows[:top]), (_HOW,), len(rows))


def _together(evidence: Evidence, sections: CodeSections) -> I64:
    """How many pages (s,) the functions that ran of each section would fill by themselves."""
    regions, code = evidence.program.regions, evidence.flow.instructions
    rows = evidence.rows_of(code.address)
    ran = distinct(regions.containing(code.address[rows[evidence.flow.executed[rows] > 0]]))
    ran = ran[ran >= 0]
    size = (regions.end[ran] - regions.start[ran]).astype(np.int64)
    aligned = -(-size // _ALIGNED) * _ALIGNED
    total = np.bincount(sections.of(regions.start[ran]), aligned, len(sections))
    pages: I64 = np.ceil(total / PAGE).astype(np.int64)
    return pages


def _line(since: F64, whole: float) -> str:
    """How many of all pages had run by each moment, in so many steps."""
    if whole <= 0:
        return ""
    moments = np.linspace(0, whole, _WIDEST + 1)[1:]
    share = np.searchsorted(since, moments, side="right") / len(since)
    return "".join(_EIGHTHS[int(7 * part)] for part in share.tolist())


def _by_page(
    evidence: Evidence, pages: TouchedPages, sections: CodeSections, top: int | None
) -> Table:
    order = np.argsort(pages.since, kind="stable")[:top]
    address = pages.address[order]
    names = [sections.names[section] for section in pages.section[order].tolist()]
    begins = placed_addresses(page_of(address) * np.uint64(PAGE))
    values: list[list[Value]] = [
        pages.since[order].tolist(),
        [file for file, _ in names],
        [section for _, section in names],
        begins.tolist(),
        [*evidence.names.functions(address)],
    ]
    return build(*_PAGES[:2], list(zip(_OF_PAGES, values, strict=True)), found=len(pages))


def _never_again(
    evidence: Evidence, seen: SeenEnds, sections: CodeSections, top: int | None
) -> Table:
    regions = evidence.program.regions
    owner = np.append(regions.parent, -1)[regions.containing(seen.address)]
    rows = np.flatnonzero((owner >= 0) & evidence.concerns(seen.address))
    function, place = np.unique(owner[rows], return_inverse=True)
    first = np.full(len(function), np.inf)
    np.minimum.at(first, place, seen.since[rows])
    last, part = np.zeros((2, len(function)))
    np.maximum.at(last, place, seen.until[rows])
    np.maximum.at(part, place, seen.part[rows])
    size = (regions.end[function] - regions.start[function]).astype(np.int64)
    early = np.flatnonzero(part <= _EARLY)
    order = early[np.argsort(-size[early], kind="stable")][:top]
    begins = regions.start[function[order]]
    values: list[list[Value]] = [
        [evidence.names.region(row) for row in function[order].tolist()],
        [sections.names[section][0] for section in sections.of(begins).tolist()],
        *(column.tolist() for column in (begins, size[order], first[order], last[order])),
    ]
    columns = list(zip(_OF_FUNCTIONS, values, strict=True))
    return build(*_FUNCTIONS[:2], columns, notes=(_AGAIN,), found=len(early))
