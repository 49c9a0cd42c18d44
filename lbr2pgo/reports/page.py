"""What a page shows, worked out from a `Report`, as plain data that its scripts draw from.

Nothing here is escaped: the template and the scripts do that. Texts are written once, and named by
their number elsewhere. Anchors are `t-NAME` for a table, `f-HEX` for a function by its start, and
`i-HEX` for an instruction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from lbr2pgo.analyses.table import NUMBERS, Column, Table, Unit, Value
from lbr2pgo.reports.model import CallNode, FunctionView, Report, Timing
from lbr2pgo.reports.values import HIDDEN, told, written
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.printable import printable

Json = dict[str, object]

"""Units whose values are texts on the page; addresses, since scripts know 53 bits of a number."""
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


class PageTexts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, made safe to show and not longer than is useful."""
        shown = printable(text)
        cut = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
        return self._numbers.setdefault(cut, len(self._numbers))

    def all(self) -> list[str]:
        """All of them, by number."""
        return [*self._numbers]


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page that is built when it is opened."""

    anchor: str
    title: str
    size: str
    """How much is in it, in words."""


def visible(report: Report) -> tuple[Table, ...]:
    """The tables that people read: those that hold something or have something to say."""
    shown = (table for table in report.tables if table.name not in HIDDEN)
    return tuple(told(table) for table in shown if len(table))


def silent(report: Report) -> tuple[Table, ...]:
    """Tables without rows that say why."""
    return tuple(
        table
        for table in report.tables
        if not len(table) and table.notes and table.name not in HIDDEN
    )


def sections(report: Report) -> list[PageSection]:
    """The tables as parts of the page."""
    return [PageSection(f"t-{table.name}", table.title, _size(table)) for table in visible(report)]


def _size(table: Table) -> str:
    if table.found > len(table):
        return f"{len(table):,} of {table.found:,} rows"
    return f"{len(table):,} row{'s' if len(table) != 1 else ''}"


def content(report: Report) -> Json:
    """All that the scripts draw."""
    texts = PageTexts()
    flames = [
        {"title": title, **flame(root, texts)}
        for title, root in (("Call stacks", report.call_tree), ("Calls", report.call_graph))
        if root is not None
    ]
    found: Json = {
        "tables": [table_data(table, texts) for table in visible(report)],
        "functions": [_function(view, texts) for view in report.functions],
        "charts": charts(report, texts),
        "flames": flames,
    }
    return {"texts": texts.all(), **found}


def table_data(table: Table, texts: PageTexts) -> Json:
    """A table as its columns and rows."""
    return {
        "name": table.name,
        "title": texts.number(table.title),
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "unit": str(column.kind),
                "digits": NUMBERS[column.kind].digits if column.kind in NUMBERS else None,
            }
            for column in table.columns
        ],
        "rows": [_row(table.columns, row, texts) for row in table.placed_rows],
        "notes": [texts.number(note) for note in table.notes],
    }


def _row(columns: Sequence[Column], row: Sequence[Value], texts: PageTexts) -> list[Value]:
    return [_value(column, value, texts) for column, value in zip(columns, row, strict=True)]


def _value(column: Column, value: Value, texts: PageTexts) -> Value:
    if value is None:
        return None
    if column.kind is Unit.ADDRESS:
        return texts.number(f"{value:#x}")  # with its slot: it names an instruction in links
    if column.kind.is_name:
        return texts.number(written(column.kind, value))
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _function(view: FunctionView, texts: PageTexts) -> Json:
    """One function: its source, its code, and its picture."""
    graph, left_out = _graph(view)
    code = told(view.code)
    return {
        "name": texts.number(written(Unit.FUNCTION, view.name)),
        "anchor": f"f-{view.start:x}",
        "share": view.share,
        "source": None if not view.source else table_data(told(view.source), texts),
        "code": table_data(Table(code.name, code.title, code.columns, (), code.notes), texts),
        "parts": [_part(code, part, texts) for part in code_parts(code)],
        "graph": graph,
        "left_out": left_out,
    }


def _part(code: Table, part: Sequence[tuple[Value, ...]], texts: PageTexts) -> list[object]:
    """A row of code, or how many that never ran, and from where to where."""
    if len(part) == 1:
        return list(_row(code.columns, part[0], texts))
    address = [column.name for column in code.columns].index("address")
    ends = (written(Unit.ADDRESS, part[row][address]) for row in (0, -1))
    return [len(part), *ends]


def code_parts(code: Table) -> list[list[tuple[Value, ...]]]:
    """The rows of a function's code, one by one; long runs that never ran stay together."""
    count = [column.name for column in code.columns].index("count")
    parts: list[list[tuple[Value, ...]]] = []
    for is_cold, run in groupby(code.placed_rows, key=lambda row: not row[count]):
        rows = list(run)
        parts += [rows] if is_cold and len(rows) >= _COLD_RUN else [[row] for row in rows]
    return parts


def heat(share: float) -> int:
    """A class of colour for a part of the largest count; a root, as counts spread widely."""
    return round(_HEATS * math.sqrt(share))


def _graph(view: FunctionView) -> tuple[Json, str]:
    """The hottest blocks and what joins them, and how many are left out."""
    blocks = view.graph.blocks
    seen = [i for i, block in enumerate(blocks) if block.count]
    kept = sorted(sorted(seen, key=lambda i: (-blocks[i].count, i))[:_BLOCKS])
    nodes = [
        {
            "id": str(i),
            "label": [f"{i}: {blocks[i].count:,}", printable(blocks[i].label)],
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


def _left_out(blocks: int, seen: int, kept: int) -> str:
    parts = [f"{kept:,} of {blocks:,} blocks"]
    if blocks > seen:
        parts.append(f"{blocks - seen:,} were not seen to run")
    if seen > kept:
        parts.append(f"{seen - kept:,} ran less often")
    return "; ".join(parts)


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
        "line": texts.number(timing.line or ""),
        "address": written(Unit.ADDRESS, timing.start),
        "facts": "; ".join(_facts(timing, total, seen, kept)),
        "cycles": cycles,
        "rate": [rates.get(value) for value in cycles],
        "before": [before.get(value) for value in cycles] if before else None,
        "modes": [[mode.cycles, str(mode)] for mode in timing.modes],
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
    yield f"{total:,} times"
    if timing.is_simulated:
        yield "simulated cycles"
    if timing.modes:
        yield f"modes at {', '.join(map(str, timing.modes))} cycles"
    if seen < total:
        yield f"{(total - seen) / total:.1%} took longer than {timing.cycles[kept - 1]:,}"
    if timing.before is not None:
        old = ", ".join(map(str, timing.before.modes))
        yield f"before: {sum(timing.before.count):,} times, modes at {old} cycles (blue)"
    if timing.missing:
        yield f"{timing.missing:,} without cycles"
    if timing.saturated:
        yield f"{timing.saturated:,} saturated"


def flame(root: CallNode, texts: PageTexts) -> Json:
    """A call tree flat, callers before callees: depth, name and samples of each.

    Scripts rebuild it; JSON that is nested as deep as stacks may be is beyond some parsers.
    """
    frames: list[object] = []
    waiting = [(0, root)]
    while waiting:
        depth, node = waiting.pop()
        frames.append([depth, texts.number(written(Unit.FUNCTION, node.name)), node.total])
        if depth < _DEEPEST:
            large = [each for each in node.callees if each.total >= _SMALLEST * root.total]
            waiting += [(depth + 1, callee) for callee in reversed(large)]
    return {"frames": frames}
