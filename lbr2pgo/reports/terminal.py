"""A report in the terminal: tables that fit its width, colour only where there is a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from lbr2pgo.analyses.table import Table
from lbr2pgo.model.doubts import parted
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports.bars import bars
from lbr2pgo.reports.fitting import GAP, cut, fitted
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.values import HIDDEN, told
from lbr2pgo.support.counted import counted
from lbr2pgo.support.printable import printable

FILE_WIDTH = 200
"""Columns where the output is no terminal and COLUMNS does not say how wide it is."""
_FIRST_ROWS, _OTHER_ROWS, _LEAST_ROWS = 10, 5, 3
"""Rows of a short report's first table, and of its others; where there is no room, the least."""
_MOST_LINES = 60
"""Of a short report, unless warnings alone take them."""


def make_console() -> Console:
    """Standard output, as wide as it is; colour and width as the environment says."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = FILE_WIDTH
    return console


def show(report: Report, console: Console | None = None, *, charts: int = 0) -> None:
    """Print the report's tables and what is to be said of them, each thing once.

    `charts`: of so many blocks, how often they took how many cycles.
    """
    console = console or make_console()
    _head(report, console)
    _, notes = parted(report.notes)
    for note in notes:
        _note(note, console)
    _sentences(report, console)
    for timing in report.timings[:charts]:
        show_table(bars(timing), console)
    said = set(report.notes)
    for table in _told_tables(report):
        news = [note for note in table.notes if note not in said]
        said.update(news)
        if not (table.rows or news) and table.notes:
            news = ["As said above."]
        show_table(replace(table, notes=tuple(news)), console)


def show_briefly(report: Report, console: Console | None = None) -> None:
    """Print what answers at first sight, and how to see the rest."""
    console = console or make_console()
    tables = {table.name: table for table in _told_tables(report) if table.rows}
    chosen = [tables[name] for name in report.first if name in tables]
    if not chosen:  # notes tell why
        show(report, console)
        return
    with console.capture() as head:
        _head(report, console)
        _sentences(report, console)
    with console.capture() as foot:
        console.print()
        rest = f"{counted(len(tables), 'table')} with notes: --full. One: --only {chosen[-1].name}."
        console.print(_safe(f"{rest} In the browser: lbr2pgo view."), style="dim")
    room = _MOST_LINES - _lines(head.get() + foot.get())
    drawn = _drawn_in(room, chosen, console)
    console.file.write("".join((head.get(), *drawn, foot.get())))


def _drawn_in(room: int, tables: Sequence[Table], console: Console) -> list[str]:
    """In so many lines, of all tables but the first with fewer rows, or else without the last."""
    drawn: list[str] = []
    for rows in range(_OTHER_ROWS, _LEAST_ROWS - 1, -1):
        drawn = [_short(each, console, rows if n else _FIRST_ROWS) for n, each in enumerate(tables)]
        if sum(map(_lines, drawn)) <= room:
            return drawn
    while len(drawn) > 1 and sum(map(_lines, drawn)) > room:
        drawn.pop()
    return drawn


def _short(table: Table, console: Console, rows: int) -> str:
    few = replace(table, placed_rows=table.placed_rows[:rows])
    with console.capture() as drawn:
        _title(few, console)
        console.print(_draw(few, console)[0])
    return drawn.get()


def _lines(text: str) -> int:
    return text.count("\n")


def show_table(table: Table, console: Console) -> None:
    """Print one table with its notes."""
    _title(table, console)
    if table.rows:
        drawn, left_out = _draw(table, console)
        console.print(drawn)
        if left_out:
            console.print(_safe(f"too narrow for: {', '.join(left_out)}"), style="dim italic")
    else:
        console.print("  nothing to show", style="dim")
    for note in table.notes:
        _note(note, console)


def _told_tables(report: Report) -> Iterator[Table]:
    """Those of which there is something to show or to say."""
    views: Iterable[Table] = (view.source or view.code for view in report.functions)
    tables = (*report.tables, *views)
    hidden = {*HIDDEN} - {*report.named}
    shown = (table for table in tables if table.name not in hidden)
    yield from (told(table) for table in shown if table.rows or table.notes)


def _head(report: Report, console: Console) -> None:
    console.print(_safe(report.title), style="bold")
    for profile in report.profiles:
        console.print(_safe(f"of {profile}"), style="dim")
    doubts, _ = parted(report.notes)
    for doubt in doubts:
        console.print(_safe(f"warning: {doubt}"), style="bold yellow")


def _sentences(report: Report, console: Console) -> None:
    for sentence in report.summary:
        console.print(_safe(f"- {sentence}"))


def _title(table: Table, console: Console) -> None:
    console.print()
    of_all = f" ({len(table):,} of {table.found:,})" if table.found > len(table) else ""
    console.print(_safe(table.title + of_all), style="bold")


def _safe(text: str) -> Text:
    """Text in which nothing is markup, and nothing steers the terminal."""
    return Text(printable(without_unique_suffix(text)))


def _note(note: str, console: Console) -> None:
    console.print(_safe(f"note: {note}"), style="yellow")


def _draw(table: Table, console: Console) -> tuple[Drawn, list[str]]:
    """The table as far as it fits, and what had no room."""
    fit = fitted(table, console.width)
    drawn = Drawn(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="underline")
    for i, width in fit.widths.items():
        column = table.columns[i]
        drawn.add_column(
            _safe(column.title),
            justify="left" if column.kind.is_name else "right",
            width=width,
            vertical="bottom",
        )
    for row in fit.cells:
        drawn.add_row(
            *(Text(cut(table.columns[i], row[i], w), no_wrap=True) for i, w in fit.widths.items())
        )
    return drawn, fit.left_out(table.columns)
