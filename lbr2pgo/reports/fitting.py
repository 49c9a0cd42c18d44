"""Which columns of a table fit a terminal, how wide each is, and what of its cells is shown.

Where there is no room for all, columns go (`values.spare`). Numbers are whole or absent; names are
shortened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, written
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports.values import shortened, spare
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.printable import printable

Cells = list[list[str]]

GAP = 2
"""Between columns."""
_LEAST_NAMES = ((28, 56), (28, 28), (16, 32), (12, 24), (12, 12), (8, 8))
"""How narrow names may be, and words that the table is about: columns go before these are cut to
the first pair, and they are cut further where no column is left to go."""
_TOLD = 32
"""Of the value of a column that is left out."""
_INDENT = "  "
_ARGUMENTS = re.compile(r"<[^<>]+>")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown of a table."""

    widths: dict[int, int]
    """Width of each column that is shown, by its number."""
    cells: Cells
    """All cells as texts."""
    constant: dict[int, str]
    """The value of each column that has no other one, of tables of several rows."""

    def left_out(self, columns: Sequence[Column]) -> list[str]:
        """Titles of the columns that are not shown, with the value of those that have only one."""
        return [
            f"{c.title} ({cut(c, self.constant[i], _TOLD) or 'none'})"
            if i in self.constant
            else c.title
            for i, c in enumerate(columns)
            if i not in self.widths
        ]


def fitted(table: Table, available: int) -> Fitted:
    """The columns that fit side by side in so many cells of a terminal."""
    depths = table.column("depth") if any(c.name == "depth" for c in table.columns) else None
    cells = [
        [
            _cell(column, value, depths[n] if depths else 0)
            for column, value in zip(table.columns, row, strict=True)
        ]
        for n, row in enumerate(table.rows)
    ]
    constant = {
        i: cells[0][i]
        for i in range(len(table.columns))
        if len(cells) > 1 and len({row[i] for row in cells}) == 1
    }
    shown, may_go = list(range(len(table.columns))), spare(table.columns, constant)
    for least_name, least_words in _LEAST_NAMES:
        least = _least(table, cells, least_name, least_words)
        while _taken(least, shown) > available and may_go:
            shown.remove(may_go.pop())
        if _taken(least, shown) <= available:
            break
    widths = _grown(table, cells, {i: least[i] for i in shown}, available)
    return Fitted(widths, cells, constant)


def cut(column: Column, text: str, width: int) -> str:
    """A cell that fits: line numbers stay, of paths the middle goes."""
    if cell_len(text) <= width:
        return text
    if column.kind is Unit.LOCATION:
        text = _short_location(text, width)
    elif column.kind is Unit.FUNCTION:
        text = _short_function(text, width)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def _taken(widths: dict[int, int], columns: Sequence[int]) -> int:
    return sum(widths[i] for i in columns) + GAP * (len(columns) - 1)


def _least(table: Table, cells: Cells, least_name: int, least_words: int) -> dict[int, int]:
    """How narrow each column may be: a number as wide as it is, titles broken between words."""
    least = {}
    for i, column in enumerate(table.columns):
        word = max(cell_len(word) for word in column.title.split())
        widest = _widest(cells, i)
        if column.kind is Unit.LOCATION:  # of which the line number stays
            number = max((len(row[i].rpartition(":")[2]) for row in cells), default=0)
            widest = min(widest, max(least_name // 2, 6) + number)
        elif column.kind.is_name:
            widest = min(widest, least_words if _is_figure(column) else least_name)
        least[i] = max(word, widest)
    return least


def _grown(table: Table, cells: Cells, least: dict[int, int], available: int) -> dict[int, int]:
    """Widths of columns that share what room is left: words that the table is about come first."""
    widths = dict(least)
    words = [i for i in least if _is_figure(table.columns[i])]
    _grow(widths, {i: max(_widest(cells, i) - widths[i], 0) for i in words}, available)
    _grow(widths, {i: _natural(table, cells, i) - widths[i] for i in least}, available)
    return widths


def _grow(widths: dict[int, int], wanted: dict[int, int], available: int) -> None:
    """Give columns the room that is left, as far as they want it; long ones give way first."""
    free = available - _taken(widths, list(widths))
    while free > 0 and any(wanted.values()):
        growing = [i for i, more in wanted.items() if more]
        part = max(1, min(free // len(growing), *(wanted[i] for i in growing)))
        for i in growing[:free]:
            widths[i] += part
            wanted[i] -= part
            free -= part


def _is_figure(column: Column) -> bool:
    """Whether it has words that the table is about, such as modes."""
    return column.priority == FIGURE and column.kind is Unit.TEXT


def _natural(table: Table, cells: Cells, column: int) -> int:
    return max(_widest(cells, column), cell_len(table.columns[column].title))


def _widest(cells: Cells, column: int) -> int:
    return max((cell_len(row[column]) for row in cells), default=0)


def _cell(column: Column, value: Value, depth: Value) -> str:
    if value is None:
        return "?" if column.kind.is_name else ""
    text = written(column.kind, value)
    if column.kind is Unit.FUNCTION and isinstance(depth, int):
        text = _INDENT * depth + text
    return printable(without_unique_suffix(text))


def _short_location(text: str, width: int) -> str:
    """The file's own name stays if it can.

    >>> _short_location("/src/backend/tables/split.c:1234", 24)
    '/src/backe…/split.c:1234'
    >>> _short_location("long_file_name.c:1234", 14)
    'long…me.c:1234'
    """
    path, colon, line = text.rpartition(":")
    room = width - len(colon + line)
    folder, slash, name = path.rpartition("/")
    head = room - len(name) - 2
    if slash and head > 0:
        return f"{folder[:head]}…/{name}{colon}{line}"
    return shortened(name, max(room, 2)) + colon + line


def _short_function(text: str, width: int) -> str:
    """Arguments of templates go first, the inner ones before those around them.

    >>> _short_function("std::map<int, std::pair<int, long>>::insert", 26)
    'std::map<…>::insert'
    """
    brief = text
    while cell_len(brief) > width and (inner := _ARGUMENTS.sub("\0", brief)) != brief:
        brief = inner
    brief = brief.replace("\0", "<…>")
    return brief if cell_len(brief) <= width else shortened(brief, width)
