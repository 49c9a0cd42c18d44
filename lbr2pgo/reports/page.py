"""What a page shows, worked out from a `Report`: cells with links, charts, pictures.

Nothing here is escaped: the template does that. Anchors are `t-NAME` for a table, `f-HEX` for a
function by its start, and `i-HEX` for an instruction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from lbr2pgo.analyses.table import Column, Table, Unit, Value
from lbr2pgo.reports.model import CallNode, FunctionView, Report, Timing
from lbr2pgo.reports.values import FORMATS, HIDDEN
from lbr2pgo.support.printable import printable

_NUMBERS = (Unit.COUNT, Unit.SHARE, Unit.RATE, Unit.CYCLES)
_LONGEST = 400
"""Characters of a name; mangled and demangled ones can be far longer."""
_COLD_RUN = 6
"""Neighbouring instructions that never ran are drawn as one row if there are so many."""
_BLOCKS = 120
"""A picture holds the hottest blocks only: no layout of thousands is readable."""
_TAIL = 0.01
"""The slowest part of a distribution, which would squeeze the rest of its chart."""
_SMALLEST, _DEEPEST = 0.0005, 200
"""Smaller and deeper frames of the flame graph are left out."""
_HEATS = 9


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as it is shown."""

    text: str
    order: str | None
    """What to sort by, of numbers."""
    link: str | None
    """An anchor of this page."""
    search: str | None = None
    """What to search for in the table that the link leads to."""


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One instruction, or a stretch of them that never ran."""

    anchor: str | None
    heat: int
    """From 0 to 9."""
    cells: tuple[Cell, ...]
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its rows, its picture, and the tables that speak of it."""

    view: FunctionView
    anchor: str
    rows: tuple[CodeRow, ...]
    graph: dict[str, object]
    left_out: str
    tables: tuple[tuple[Table, int], ...]
    """With how many rows each."""


@dataclass(frozen=True, slots=True)
class Chart:
    """How long one block, or one round of a loop, took."""

    title: Cell
    line: str
    facts: str
    series: dict[str, Sequence[float]]
    """`cycles`, ascending, and the `rate` of each."""


class Links:
    """Where on the page functions and instructions are shown, and which table names them first."""

    def __init__(self, report: Report) -> None:
        self._functions = {view.name: f"f-{view.start:x}" for view in reversed(report.functions)}
        self._shown: set[Value] = {
            address
            for view in report.functions
            for row in code_parts(view.code)
            if len(row) == 1
            for address in _of_kind(view.code, row[0], Unit.ADDRESS)
        }
        self._tables: dict[Value, str] = {}
        for table in visible(report):
            for row in table.rows:
                for address in _of_kind(table, row, Unit.ADDRESS):
                    self._tables.setdefault(address, f"t-{table.name}")

    def cell(self, column: Column, value: Value) -> Cell:
        """A value of a table, with a link to where its function or instruction is shown."""
        link = None
        if column.kind is Unit.FUNCTION and isinstance(value, str):
            link = self._functions.get(value)
        elif column.kind is Unit.ADDRESS and value in self._shown:
            link = f"i-{value:x}"
        return Cell(text_of(column, value), _order(column, value), link)

    def place(self, name: str, address: int) -> Cell:
        """A name for an address, with a link to it."""
        return Cell(name, None, f"i-{address:x}" if address in self._shown else None)

    def code_cell(self, column: Column, value: Value) -> Cell:
        """A value of a function's code; its address leads back to the first table with it."""
        text = text_of(column, value)
        link = self._tables.get(value) if column.kind is Unit.ADDRESS else None
        return Cell(text, None, link, text if link else None)


def visible(report: Report) -> tuple[Table, ...]:
    """The tables that people read."""
    return tuple(table for table in report.tables if table.name not in HIDDEN)


def text_of(column: Column, value: Value) -> str:
    """A value for people, not longer than is useful."""
    text = "" if value is None else printable(FORMATS[column.kind](value))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def depth_of(table: Table, row: Sequence[Value]) -> int:
    """How far a row of a tree is indented; 0 in tables that are none."""
    depths = [v for c, v in zip(table.columns, row, strict=True) if c.name == "depth"]
    return int(depths[0] or 0) if depths else 0


def is_number(column: Column) -> bool:
    """Whether a column is to be aligned and sorted as numbers."""
    return column.kind in _NUMBERS


def _order(column: Column, value: Value) -> str | None:
    if not is_number(column):
        return None
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _of_kind(table: Table, row: Sequence[Value], kind: Unit) -> Iterator[Value]:
    for column, value in zip(table.columns, row, strict=True):
        if column.kind is kind and value is not None:
            yield value


def function(report: Report, view: FunctionView, links: Links) -> Function:
    """Lay one function out."""
    graph, left_out = _graph(view)
    tables = [
        (table, sum(view.name in _of_kind(table, row, Unit.FUNCTION) for row in table.rows))
        for table in visible(report)
    ]
    rows = tuple(_code_rows(view.code, links))
    named = tuple((table, count) for table, count in tables if count)
    return Function(view, f"f-{view.start:x}", rows, graph, left_out, named)


def code_parts(code: Table) -> list[list[tuple[Value, ...]]]:
    """The rows of a function's code, one by one; long runs that never ran stay together."""
    count = [column.name for column in code.columns].index("count")
    parts: list[list[tuple[Value, ...]]] = []
    for is_cold, run in groupby(code.rows, key=lambda row: not row[count]):
        rows = list(run)
        parts += [rows] if is_cold and len(rows) >= _COLD_RUN else [[row] for row in rows]
    return parts


def _code_rows(code: Table, links: Links) -> Iterator[CodeRow]:
    names = [column.name for column in code.columns]
    count, address = names.index("count"), names.index("address")
    largest = max((int(value or 0) for value in code.column("count")), default=0)
    for part in code_parts(code):
        row = part[0]
        if len(part) > 1:
            first, last = (text_of(code.columns[address], part[i][address]) for i in (0, -1))
            yield CodeRow(None, 0, (), f"{len(part):,} instructions not seen: {first} to {last}")
        else:
            cells = tuple(links.code_cell(c, v) for c, v in zip(code.columns, row, strict=True))
            share = int(row[count] or 0) / max(largest, 1)
            yield CodeRow(f"i-{row[address]:x}", heat(share), cells)


def heat(share: float) -> int:
    """A class of colour for a part of the largest count; a root, as counts spread widely."""
    return round(_HEATS * math.sqrt(share))


def _graph(view: FunctionView) -> tuple[dict[str, object], str]:
    """The hottest blocks and what joins them, and how many are left out."""
    blocks = view.graph.blocks
    seen = [i for i, block in enumerate(blocks) if block.count]
    kept = sorted(sorted(seen, key=lambda i: (-blocks[i].count, i))[:_BLOCKS])
    nodes = [
        {
            "id": str(i),
            "label": [f"{i}: {blocks[i].count:,}", text_of(_LABEL, blocks[i].label)],
            "heat": heat(blocks[i].heat),
            "href": f"#i-{blocks[i].start:x}",
        }
        for i in kept
    ]
    inside = set(kept)
    edges = [
        {
            "source": str(edge.source),
            "target": str(edge.target),
            "kind": edge.kind,
            "label": "" if edge.share is None else f"{edge.share:.1%}",
            "width": 1 + 3 * (edge.share or 0),
            "title": f"{edge.kind}: {edge.count:,}",
        }
        for edge in view.graph.edges
        if edge.count and edge.source in inside and edge.target in inside
    ]
    return {"nodes": nodes, "edges": edges}, _left_out(len(blocks), len(seen), len(kept))


_LABEL = Column("label", "label", Unit.TEXT)


def _left_out(blocks: int, seen: int, kept: int) -> str:
    parts = [f"{kept:,} of {blocks:,} blocks"]
    if blocks > seen:
        parts.append(f"{blocks - seen:,} were not seen to run")
    if seen > kept:
        parts.append(f"{seen - kept:,} ran less often")
    return "; ".join(parts)


def charts(report: Report, links: Links) -> list[Chart]:
    """The occurrence rate by cycles of each timed block and loop, without the slowest part."""
    return [_chart(timing, links) for timing in report.timings if timing.count]


def _chart(timing: Timing, links: Links) -> Chart:
    total = sum(timing.count)
    kept, seen = 0, 0
    while kept < len(timing.count) and seen < total * (1 - _TAIL):
        seen += timing.count[kept]
        kept += 1
    facts = [f"until {timing.end:#x}", f"{total:,} times"]
    facts += ["simulated cycles"] if timing.is_simulated else []
    if timing.modes:
        facts.append(f"modes at {', '.join(map(str, timing.modes))} cycles")
    if seen < total:
        facts.append(f"{(total - seen) / total:.1%} took longer than {timing.cycles[kept - 1]:,}")
    facts += [f"{timing.missing:,} without cycles"] if timing.missing else []
    facts += [f"{timing.saturated:,} saturated"] if timing.saturated else []
    title = text_of(_LABEL, f"{'Loop at' if timing.is_loop else 'Block'} {timing.name}")
    rates = [round(count / total, 6) for count in timing.count[:kept]]
    return Chart(
        links.place(title, timing.start),
        text_of(_LABEL, timing.line),
        "; ".join(facts),
        {"cycles": timing.cycles[:kept], "rate": rates},
    )


def flame(root: CallNode) -> dict[str, list[object]]:
    """The call tree flat, callers before callees: depth, name (an index) and samples of each.

    Scripts rebuild it; JSON that is nested as deep as stacks may be is beyond some parsers.
    """
    names: dict[str, int] = {}
    frames: list[object] = []
    waiting = [(0, root)]
    while waiting:
        depth, node = waiting.pop()
        frames.append([depth, names.setdefault(text_of(_LABEL, node.name), len(names)), node.total])
        if depth < _DEEPEST:
            large = [each for each in node.callees if each.total >= _SMALLEST * root.total]
            waiting += [(depth + 1, callee) for callee in reversed(large)]
    return {"names": [*names], "frames": frames}
