"""A report in the terminal: tables that fit its width, colour only where there is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from lbr2pgo.analyses.table import Column, Table, Unit, Value
from lbr2pgo.model.doubts import parted
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.values import HIDDEN, told, without_unique_suffix, written
from lbr2pgo.support.printable import printable

Cells = list[list[str]]

FILE_WIDTH = 200
"""Columns where the output is no terminal and nobody says how wide it is."""

_LEAST_NAME = 12
_GAP = 3  # between columns, as rich draws them
_INDENT = "  "


def make_console() -> Console:
    """Standard output, as wide as it is; colour and width as the environment says."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and console.width == 80:
        console = Console(highlight=False, markup=False, emoji=False, width=FILE_WIDTH)
    return console


def show(report: Report, console: Console | None = None) -> None:
    """Print the report's tables and what is to be said of them, each thing once."""
    console = console or make_console()
    console.print(_safe(report.title), style="bold")
    for profile in report.profiles:
        console.print(_safe(f"of {profile}"), style="dim")
    doubts, notes = parted(report.notes)
    for doubt in doubts:
        console.print(_safe(f"warning: {doubt}"), style="bold yellow")
    for note in notes:
        _note(note, console)
    for sentence in report.summary:
        console.print(_safe(f"- {without_unique_suffix(sentence)}"))
    said = set(report.notes)
    for table in (*report.tables, *(view.source or view.code for view in report.functions)):
        if table.name not in HIDDEN and not _is_silent(table):
            news = [note for note in table.notes if note not in said]
            said.update(news)
            if not (table.rows or news) and table.notes:
                news = ["As said above."]
            show_table(told(replace(table, notes=tuple(news))), console)


def _is_silent(table: Table) -> bool:
    """Whether there is nothing to show, and nothing to say of it."""
    return not (table.rows or table.notes)


def show_table(table: Table, console: Console) -> None:
    """Print one table with its notes."""
    console.print()
    cut = f" ({len(table):,} of {table.found:,})" if table.found > len(table) else ""
    console.print(_safe(table.title + cut), style="bold")
    if table.rows:
        console.print(_draw(table, console))
    else:
        console.print(f"{_INDENT}nothing to show", style="dim")
    for note in table.notes:
        _note(note, console)


def _safe(text: str) -> Text:
    """Text in which nothing is markup, and nothing steers the terminal."""
    return Text(printable(text))


def _note(note: str, console: Console) -> None:
    console.print(_safe(f"note: {note}"), style="yellow")


def _draw(table: Table, console: Console) -> Drawn:
    """The table, without some of its columns where it is too wide."""
    depths = table.column("depth") if any(c.name == "depth" for c in table.columns) else None
    cells = [
        [_cell(c, value, depths[n] if depths else 0) for c, value in _pairs(table, row)]
        for n, row in enumerate(table.rows)
    ]
    widths = _fitting(table, cells, console.width)
    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, width in widths.items():
        is_name = table.columns[i].kind.is_name
        drawn.add_column(
            _safe(table.columns[i].title), justify="left" if is_name else "right", width=width
        )
    for row in cells:
        drawn.add_row(*(_cut(table.columns[i], row[i], width) for i, width in widths.items()))
    if len(widths) < len(table.columns):
        left_out = [c.title for i, c in enumerate(table.columns) if i not in widths]
        drawn.caption = _safe(f"too narrow for: {', '.join(left_out)}")
        drawn.caption_justify = "left"
    return drawn


def _fitting(table: Table, cells: Cells, available: int) -> dict[int, int]:
    """Columns that fit, with their widths.

    First addresses go, then other numbers, the last ones first; names and one number stay.
    """
    shown = list(range(len(table.columns)))
    numbers = [i for i in shown if not table.columns[i].kind.is_name]
    spare = sorted(numbers[1:], key=lambda i: (table.columns[i].kind is Unit.ADDRESS, i))
    while (widths := _widths(table, cells, shown, available)) is None:
        if not spare:
            return _least(table, cells, shown)
        shown.remove(spare.pop())
    return widths


def _pairs(table: Table, row: Sequence[Value]) -> Iterator[tuple[Column, Value]]:
    return zip(table.columns, row, strict=True)


def _widths(
    table: Table, cells: Cells, columns: Sequence[int], available: int
) -> dict[int, int] | None:
    """Width of each of these columns so that they fit side by side; None if they can't.

    Numbers are never cut. Names share what numbers leave; long ones give way first.
    """
    least = _least(table, cells, columns)
    free = available - sum(least.values()) - _GAP * (len(columns) - 1)
    if free < 0:
        return None
    wanted = {i: _natural(table, cells, i) - width for i, width in least.items()}
    while free > 0 and any(wanted.values()):
        growing = [i for i, more in wanted.items() if more]
        part = max(1, min(free // len(growing), *(wanted[i] for i in growing)))
        for i in growing[:free]:
            least[i] += part
            wanted[i] -= part
            free -= part
    return least


def _least(table: Table, cells: Cells, columns: Sequence[int]) -> dict[int, int]:
    """How narrow each column may be: a number as wide as it is, titles broken between words."""
    least = {}
    for i in columns:
        word = max(cell_len(word) for word in table.columns[i].title.split())
        widest = max((cell_len(row[i]) for row in cells), default=0)
        is_name = table.columns[i].kind.is_name
        least[i] = max(word, min(widest, _LEAST_NAME) if is_name else widest)
    return least


def _natural(table: Table, cells: Cells, column: int) -> int:
    widest = max((cell_len(row[column]) for row in cells), default=0)
    return max(widest, cell_len(table.columns[column].title))


def _cut(column: Column, text: str, width: int) -> Text:
    """A cell that fits: of a source line the end is kept, of other names the beginning."""
    if cell_len(text) <= width:
        return Text(text, no_wrap=True)
    if column.kind is Unit.LOCATION:
        while cell_len(text) >= width:
            text = text[1:]
        return Text("…" + text, no_wrap=True)
    return Text(set_cell_size(text, width - 1).rstrip() + "…", no_wrap=True)


def _cell(column: Column, value: Value, depth: Value) -> str:
    if value is None:
        return "?" if column.kind.is_name else ""
    text = written(column.kind, value)
    if column.kind is Unit.FUNCTION and isinstance(depth, int):
        text = _INDENT * depth + text
    return printable(text)
