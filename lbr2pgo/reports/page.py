"""What a page shows, worked out from a `Report`, as plain data that its scripts draw from.

Places are `t-NAME` for a table, and `f-HEX` for a function by its start, with `/0xHEX` behind it
for an instruction of it, or `/FILE:LINE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from lbr2pgo.analyses.changes import base_name
from lbr2pgo.analyses.start import StartPicture
from lbr2pgo.analyses.table import SIMULATED, Table, Unit, written
from lbr2pgo.reports.model import CallNode, RanFunctions, Report, Timing
from lbr2pgo.reports.page_data import Json, PageTexts, table_data
from lbr2pgo.reports.summary import QUALITY
from lbr2pgo.reports.values import HIDDEN, told
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass

_TAIL = 0.01
"""The slowest part of a distribution, which would squeeze the rest of its chart."""
_ROWS = 2000
"""Of each table; one of lines has a row for each branch of each."""
_SIMULATED = " (simulated)"
_SMALLEST, _DEEPEST = 0.0005, 200
"""Smaller and deeper frames of the flame graph are left out."""

TABS = {
    "where": "Where",
    "why": "Why",
    "layout": "Layout",
    "data": "Data",
    "quality": "Quality",
    "changes": "Changes",
}
_TAB_OF = {
    "mispredictions": "why",
    "fetch-misses": "why",
    "data": "data",
    "latency": "why",
    "indirect-targets": "why",
    "outcomes": "layout",
    "layout": "layout",
    "hyperblocks": "layout",
    "start": "layout",
    "stack-ends": "quality",
    "phases": "quality",
    "changes": "changes",
}
"""By the first words of a table's name; others say where time went."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence of the overview, and where it leads."""

    text: str
    place: str | None


def answers(report: Report) -> list[Answer]:
    """The overview."""
    places: Sequence[int | str | None] = report.summary_places or [None] * len(report.summary)
    return [
        Answer(text, _place(report.ran, about))
        for text, about in zip(report.summary, places, strict=True)
    ]


def _place(ran: RanFunctions | None, about: int | str | None) -> str | None:
    if isinstance(about, int):
        start = None if ran is None else function_of(ran, about)
        return None if start is None else f"f-{start:x}/{about:#x}"
    return about if about in (None, QUALITY) else f"t-{about}"


def function_of(ran: RanFunctions, address: int) -> int | None:
    """The start of the function that an address lies in."""
    owners = (
        pieces[0][0]
        for pieces in ran.pieces
        if any(start <= address < end for start, end in pieces)
    )
    return next(owners, None)


def visible(report: Report) -> tuple[Table, ...]:
    """The tables that people read: those that hold something or have something to say."""
    hidden = {*HIDDEN, *(["hot-functions"] if report.ran else [])}  # all functions are a list
    shown = (table for table in report.tables if table.name not in hidden)
    return tuple(_plain(_first(told(table))) for table in shown if len(table))


def is_simulated(report: Report) -> bool:
    """Whether some of it is of a simulated processor, which a page says in one place."""
    return any(SIMULATED in table.notes for table in report.tables)


def _first(table: Table) -> Table:
    return replace(table, placed_rows=table.placed_rows[:_ROWS])


def _plain(table: Table) -> Table:
    """Without what the page says elsewhere."""
    if SIMULATED not in table.notes:
        return table
    columns = (replace(c, title=c.title.removesuffix(_SIMULATED)) for c in table.columns)
    notes = tuple(note for note in table.notes if note != SIMULATED)
    title = table.title.removesuffix(_SIMULATED)
    return replace(table, title=title, columns=tuple(columns), notes=notes)


def silent(report: Report) -> tuple[Table, ...]:
    """Tables without rows that say why."""
    return tuple(
        table
        for table in report.tables
        if not len(table) and table.notes and table.name not in HIDDEN
    )


def tab_of(name: str) -> str:
    """The tab that a table is on.

    >>> tab_of("latency-loops"), tab_of("hot-branches")
    ('why', 'where')
    """
    for words, tab in _TAB_OF.items():
        if name == words or name.startswith(f"{words}-"):
            return tab
    return "where"


def content(report: Report) -> Json:
    """All that the scripts draw, but for what a function holds."""
    texts = PageTexts()
    flames = (
        ("Call stacks", "samples", report.call_tree, None),
        ("Calls", "instructions", report.call_graph, report.call_graph_before),
    )
    found: Json = {
        "tables": [
            {**table_data(table, texts), "tab": tab_of(table.name)} for table in visible(report)
        ],
        "functions": None if report.ran is None else _functions(report.ran, texts),
        "inside": [f"{view.placed_start:x}" for view in report.functions],
        "charts": charts(report, texts),
        "time_line": None if report.time_line is None else asdict(report.time_line),
        "start": None if report.start is None else _start(report.start, texts),
        "flames": [
            {"title": title, "unit": unit, "frames": flame(root, before, texts)}
            for title, unit, root, before in flames
            if root is not None
        ],
    }
    return {"texts": texts.all(), **found}


def _start(picture: StartPicture, texts: PageTexts) -> Json:
    return {"ms": picture.ms, "lines": [[texts.number(name), ran] for name, ran in picture.lines]}


def _functions(ran: RanFunctions, texts: PageTexts) -> Json:
    """All functions; of each its pieces as start and size, the first one that it is entered at."""
    pieces = [[[f"{start:x}", end - start] for start, end in each] for each in ran.pieces]
    return {**table_data(_plain(told(ran.table)), texts), "pieces": pieces}


def charts(report: Report, texts: PageTexts) -> list[Json]:
    """The occurrence rate by cycles of each timed block and loop, without the slowest part."""
    return [_chart(timing, texts) for timing in report.timings if timing.count]


def _chart(timing: Timing, texts: PageTexts) -> Json:
    total = sum(timing.count)
    kept, seen = _without_tail(timing)
    rates = _rates(timing)
    before = {} if timing.before is None else _rates(timing.before)
    cycles = sorted({*rates, *before})
    title = f"{'Loop at' if timing.is_loop else 'Block'} {written(Unit.FUNCTION, timing.name)}"
    return {
        "title": texts.number(title),
        "line": texts.known(timing.line),
        "start": f"{timing.placed_start:x}",
        "end": f"{timing.placed_end:x}",
        "is_loop": timing.is_loop,
        "facts": texts.number("; ".join(_facts(timing, total, seen, kept))),
        "cycles": cycles,
        "rate": [rates.get(value) for value in cycles],
        "before": [before.get(value) for value in cycles] if before else None,
        "modes": [mode.cycles for mode in timing.modes],
    }


def _without_tail(timing: Timing) -> tuple[int, int]:
    """How many of the numbers of cycles are shown, and how many observations these are."""
    total, kept, seen = sum(timing.count), 0, 0
    while kept < len(timing.count) and seen < total * (1 - _TAIL):
        seen += timing.count[kept]
        kept += 1
    return kept, seen


def _rates(timing: Timing) -> dict[int, float]:
    """The occurrence rate of each number of cycles."""
    total, (kept, _) = sum(timing.count), _without_tail(timing)
    pairs = zip(timing.cycles[:kept], timing.count[:kept], strict=True)
    return {cycles: round(count / total, 6) for cycles, count in pairs}


def _facts(timing: Timing, total: int, seen: int, kept: int) -> Iterator[str]:
    yield f"until {written(Unit.ADDRESS, timing.end)}"
    yield counted(total, "time")
    if timing.is_simulated:
        yield "simulated cycles"
    yield from _modes(timing)
    if seen < total:
        yield f"{(total - seen) / total:.1%} took longer than {timing.cycles[kept - 1]:,}"
    if timing.before is not None:
        times = counted(sum(timing.before.count), "time")
        yield f"before: {', '.join((times, *_modes(timing.before)))} (blue)"
    if timing.missing:
        yield f"{timing.missing:,} without cycles"
    if timing.saturated:
        yield f"{timing.saturated:,} saturated"


def _modes(timing: Timing) -> Iterator[str]:
    """Where cycles gather, unless too few were measured to tell."""
    if timing.modes:
        yield f"modes at {', '.join(map(str, timing.modes))} cycles"


def flame(root: CallNode, before: CallNode | None, texts: PageTexts) -> list[list[int]]:
    """A call tree flat, callers before callees: depth, name, total and own of each.

    Last, where there is one to compare with, what it had before, as parts of this one's whole.
    Scripts rebuild it; JSON that is nested as deep as stacks may be is beyond some parsers.
    """
    frames: list[list[int]] = []
    part = root.total / before.total if before is not None and before.total else 0.0
    waiting: list[tuple[int, CallNode, CallNode | None]] = [(0, root, before)]
    while waiting:
        depth, node, old = waiting.pop()
        name = texts.number(written(Unit.FUNCTION, node.name))
        was = [] if before is None else [round(part * old.total) if old else 0]
        frames.append([depth, name, node.total, node.own, *was])
        if depth < _DEEPEST:
            large = [each for each in node.callees if each.total >= _SMALLEST * root.total]
            olds = {base_name(each.name): each for each in old.callees} if old else {}
            waiting += [
                (depth + 1, each, olds.get(base_name(each.name))) for each in reversed(large)
            ]
    return frames
