"""Source code beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lbr2pgo.analyses.places import short_paths
from lbr2pgo.analyses.source_view import LineFigures
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value
from lbr2pgo.program.dwarf.line import NO_ORIGIN, Origin
from lbr2pgo.reports.source_files import SourceFiles

NAME = "source"
_CONTEXT = 3
"""Lines shown around each line that ran."""
_TAB = 4

_COLUMNS = (
    Column("line", "source line", Unit.LOCATION, FIGURE),
    Column("count", "executed", Unit.COUNT, FIGURE),
    Column("taken_share", "taken", Unit.SHARE),
    Column("mispredicted", "mispredicted", Unit.COUNT, of_processor=True),
    Column("cycles", "cycles", Unit.CYCLES, of_processor=True),
    Column("text", "source", Unit.TEXT, FIGURE),
)
_SPREAD = "Cycles of a fall-through are spread evenly over its instructions."


def source_table(
    name: str, figures: LineFigures, files: SourceFiles, origins: Mapping[str, Origin]
) -> Table:
    """The lines of a function that ran and what stands around them, file by file."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = [_SPREAD] if figures.has_cycles else []
    short = short_paths(figures.files)
    for number, path in enumerate(figures.files):
        ran = [row for row in figures.of_file(number) if figures.executed[row]]
        if not ran:
            continue
        text, wrong = files.lines(path, origins.get(path, NO_ORIGIN))
        notes += [wrong] if wrong else []
        rows += _file_rows(short[number], figures, number, text)
    return Table(NAME, f"Source of {name}", _COLUMNS, tuple(rows), tuple(notes))


def _file_rows(
    name: str, figures: LineFigures, number: int, text: Sequence[str]
) -> Iterator[tuple[Value, ...]]:
    by_line = {int(figures.line[row]): row for row in figures.of_file(number)}
    ran = [line for line, row in by_line.items() if figures.executed[row]]
    around = {
        near for line in ran for near in range(line - _CONTEXT, line + _CONTEXT + 1)
        if 0 < near <= len(text)
    }  # fmt: skip
    for line in sorted({*ran, *around}):
        shown = text[line - 1].rstrip("\r").expandtabs(_TAB) if line <= len(text) else None
        row = by_line.get(line)
        figure = (None,) * 4 if row is None else _figure(figures, row)
        yield (f"{name}:{line}", *figure, shown)


def _figure(figures: LineFigures, row: int) -> tuple[Value, ...]:
    taken, past = int(figures.taken[row]), int(figures.not_taken[row])
    return (
        int(figures.executed[row]),
        taken / (taken + past) if taken + past else None,
        int(figures.mispredicted[row]) if figures.says_predictions else None,
        round(float(figures.cycles[row]), 1) if figures.has_cycles else None,
    )
