"""A report for scripts: JSON and CSV that stay as they are.

JSON is one object::

    {"format": "lbr2pgo-report-1", "title", "binary", "build_id", "profiles": […],
     "details": [{"name", "value"}, …], "notes": […], "summary": […],
     "waterfall": […],
     "tables": [{"name", "title", "columns": [{"name", "title", "kind"}], "rows": [{…}, …],
                 "found", "notes"}, …],
     "timings": [{"name", "line", "start", "end", "is_loop", "cycles": […], "count": […],
                  "missing", "saturated", "modes"}, …],
     "call_tree": {"name", "total", "own", "callees": […]} or null,
     "functions": [{"name", "start", "share", "code": a table, "source": a table or null,
                    "blocks": […], "edges": […]}, …],
     "demangled": {linkage name: C++ name, …}}

A row is an object by the columns' names. Its values go by the column's kind
(`analyses.table.Kind`): text, function and location are strings; address is a string `0x…`; count
is a whole number; share is a number from 0 to 1; rate and cycles are numbers; null is not known
(see the notes). `found` is how many rows there are, of which `rows` holds the first. Steps of the
waterfall are as in `lbr2pgo convert --summary-json`. Functions have their linkage names in all
places; `demangled` says what those of C++ read like. New keys, columns and tables may be added;
none is renamed.

CSV (RFC 4180) of one table is a line with the columns' names, and the rows. Several tables follow
one another, a line `# name` before and an empty line after each. Values are as in JSON, with an
empty field for null. In names, characters that could steer a terminal are written as escapes. Notes
are not in it.

Folded call stacks are what flame graph tools read: `outer;inner COUNT`, one stack a line, without a
head.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lbr2pgo.analyses.table import Column, Table, Unit, Value, written
from lbr2pgo.model.waterfall import row_as_json
from lbr2pgo.reports.model import CallNode, FunctionView, Report, Timing
from lbr2pgo.reports.readable import cpp_names
from lbr2pgo.support.addresses import shown
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.printable import printable

FORMAT = "lbr2pgo-report-1"


def as_folded(report: Report) -> str:
    """The call stacks; raises InputError where the recording holds none."""
    table = report.table("call-stacks-folded")
    if table is None:
        raise InputError(
            "holds no call stacks",
            where=", ".join(report.profiles),
            cure="Record them: perf record --call-graph lbr (Intel), lbr2pgo record --call-stack.",
        )
    return "".join(f"{printable(str(stack))} {count}\n" for count, stack in table.rows)


def as_json(report: Report) -> str:
    """The whole report."""
    whole = {
        "format": FORMAT,
        "title": report.title,
        "binary": report.binary,
        "build_id": report.build_id,
        "profiles": list(report.profiles),
        "details": [{"name": name, "value": value} for name, value in report.details],
        "notes": list(report.notes),
        "summary": list(report.summary),
        "waterfall": [row_as_json(row) for row in report.waterfall],
        "tables": [_table(table) for table in report.tables],
        "timings": [_timing(timing) for timing in report.timings],
        "call_tree": None,
        "functions": [_function(view) for view in report.functions],
        "demangled": cpp_names(report),
    }
    text = json.dumps(whole, indent=1, allow_nan=False)
    if report.call_tree is not None:
        # Written by hand, because call trees may be deeper than the encoder can go.
        text = text.replace('"call_tree": null', f'"call_tree": {_tree(report.call_tree)}', 1)
    return text + "\n"


def as_csv(report: Report) -> str:
    """All tables, and the code (and source) of each function that is shown."""
    out = io.StringIO()
    sources = (view.source for view in report.functions if view.source is not None)
    tables = (*report.tables, *(view.code for view in report.functions), *sources)
    for table in tables:
        if len(tables) > 1:
            out.write(f"# {table.name}\r\n")
        writer = csv.writer(out)
        writer.writerow([column.name for column in table.columns])
        writer.writerows(_plain(table.columns, row) for row in table.rows)
        if len(tables) > 1:
            out.write("\r\n")
    return out.getvalue()


def _value(column: Column, value: Value) -> Value:
    is_address = column.kind is Unit.ADDRESS and isinstance(value, int)
    return written(column.kind, value) if is_address else value


def _plain(columns: Sequence[Column], row: Sequence[Value]) -> list[Value]:
    values = [_value(column, value) for column, value in zip(columns, row, strict=True)]
    return [printable(value) if isinstance(value, str) else value for value in values]


def _table(table: Table) -> dict[str, object]:
    return {
        "name": table.name,
        "title": table.title,
        "columns": [
            {"name": column.name, "title": column.title, "kind": str(column.kind)}
            for column in table.columns
        ],
        "rows": [
            {c.name: _value(c, v) for c, v in zip(table.columns, row, strict=True)}
            for row in table.rows
        ],
        "found": table.found,
        "notes": list(table.notes),
    }


def _timing(timing: Timing) -> dict[str, object]:
    before = None if timing.before is None else _timing(timing.before)
    return _fields(timing) | {"before": before}


def _fields(part: Timing) -> dict[str, object]:
    """Its fields, with addresses as people see them."""
    return {
        name.removeprefix("placed_"): shown(value) if name.startswith("placed_") else value
        for name, value in asdict(part).items()
    }


def _function(view: FunctionView) -> dict[str, object]:
    return {
        "name": view.name,
        "start": shown(view.placed_start),
        "share": view.share,
        "code": _table(view.code),
        "source": None if view.source is None else _table(view.source),
        "blocks": [*_blocks(view)],
        "edges": [asdict(edge) for edge in view.graph.edges],
    }


def _blocks(view: FunctionView) -> Iterator[dict[str, object]]:
    """Heat is of the function's hottest block, from 0 to 1; labels are for pictures."""
    columns = (view.code.placed_column(name) for name in ("address", "line"))
    lines = dict(zip(*columns, strict=True))
    largest = max((block.count for block in view.graph.blocks), default=0)
    for block in view.graph.blocks:
        start, count = shown(block.placed_start), block.count
        label = f"{start} {lines.get(block.placed_start) or ''}".strip()
        yield {
            "start": start, "end": shown(block.placed_end), "count": count,
            "heat": count / max(largest, 1), "label": label,
        }  # fmt: skip


def _tree(root: CallNode) -> str:
    parts: list[str] = []
    waiting: list[CallNode | str] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
            continue
        head = {"name": node.name, "total": node.total, "own": node.own}
        parts.append(json.dumps(head)[:-1] + ', "callees": [')
        waiting.append("]}")
        for i, callee in enumerate(reversed(node.callees)):
            waiting += [callee] if i + 1 == len(node.callees) else [callee, ", "]
    return "".join(parts)
