"""One function as a page shows it: its source, code, branches and blocks, as plain data.

Places are bytes from the function's start; addresses elsewhere are hexadecimal texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from lbr2pgo.analyses.branch_facts import BranchFacts, BranchTarget
from lbr2pgo.analyses.table import Table, Unit, Value, written
from lbr2pgo.reports.model import FunctionGraph, FunctionView
from lbr2pgo.reports.page_data import Json, PageTexts

_COLD_RUN = 6
"""Neighbouring instructions that never ran are one row if there are so many."""
_SOURCE = ("line", "count", "taken_share", "mispredicted", "cycles", "text")


def function_data(view: FunctionView) -> Json:
    """All that is shown of a function when it is opened."""
    texts = PageTexts()
    found = {
        "start": f"{view.placed_start:x}",
        "name": texts.number(written(Unit.FUNCTION, view.name)),
        "share": view.share,
        "code": _code(view, texts),
        "lines": [] if view.source is None else _lines(view.source, texts),
        "branches": [_branch(branch, view.placed_start, texts) for branch in view.branches],
        **_graph(view.graph, view.placed_start),
        "notes": [
            texts.number(note)
            for table in (view.code, view.source) if table is not None
            for note in table.notes
        ],
    }  # fmt: skip
    return {"texts": texts.all(), **found}


def _code(view: FunctionView, texts: PageTexts) -> Json:
    """Columns, a row an instruction or run of those that never ran, of which there are `size`."""
    names = [column.name for column in view.code.columns]
    count, block, address, text, line = (
        names.index(name) for name in ("count", "block", "address", "instruction", "line")
    )
    parts = code_parts(view.code)
    first = [part[0] for part in parts]
    is_whole = [len(part) == 1 for part in parts]
    return {
        "at": [_number(row[address]) - view.placed_start for row in first],
        "size": [len(part) for part in parts],
        "count": [row[count] or 0 for row in first],
        "block": [row[block] for row in first],
        "text": [
            texts.number(str(row[text])) if whole else None
            for row, whole in zip(first, is_whole, strict=True)
        ],
        "line": [
            texts.known(_text(row[line])) if whole else None
            for row, whole in zip(first, is_whole, strict=True)
        ],
    }


def code_parts(code: Table) -> list[list[tuple[Value, ...]]]:
    """The rows of a function's code, one by one; long runs that never ran stay together."""
    count = [column.name for column in code.columns].index("count")
    parts: list[list[tuple[Value, ...]]] = []
    for is_cold, run in groupby(code.placed_rows, key=lambda row: not row[count]):
        rows = list(run)
        parts += [rows] if is_cold and len(rows) >= _COLD_RUN else [[row] for row in rows]
    return parts


def _lines(source: Table, texts: PageTexts) -> list[list[Value]]:
    at = [[column.name for column in source.columns].index(name) for name in _SOURCE]
    return [
        [texts.known(value) if isinstance(value, str) else value for value in _chosen(row, at)]
        for row in source.placed_rows
    ]


def _chosen(row: Sequence[Value], at: Sequence[int]) -> Iterator[Value]:
    for i in at:
        value = row[i]
        yield float(f"{value:.5g}") if isinstance(value, float) else value


def _branch(branch: BranchFacts, start: int, texts: PageTexts) -> list[object]:
    return [
        branch.address - start,
        [branch.taken, branch.not_taken, _short(branch.low), _short(branch.high)],
        [branch.predicted, branch.mispredicted, _short(branch.rate_low), _short(branch.rate_high)],
        [_target(target, texts) for target in branch.targets],
        [texts.number(reason) for reason in branch.reasons],
    ]


def _target(target: BranchTarget, texts: PageTexts) -> list[object]:
    return [
        None if target.address is None else f"{target.address:x}",
        texts.number(written(Unit.FUNCTION, target.function)),
        texts.known(target.line),
        texts.known(target.case),
        target.count,
        target.mispredicted,
    ]


def _graph(graph: FunctionGraph, start: int) -> Json:
    return {
        "blocks": [
            [block.placed_start - start, block.placed_end - start, block.count]
            for block in graph.blocks
        ],
        "edges": [
            [edge.source, edge.target, edge.kind, edge.count, _short(edge.share)]
            for edge in graph.edges
            if edge.count
        ],
        "loops": graph.loops,
    }


def _short(share: float | None) -> float | None:
    return None if share is None else float(f"{share:.4g}")


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _text(value: Value) -> str | None:
    return None if value is None else str(value)
