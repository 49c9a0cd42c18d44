"""How tables and texts stand in a page: plain data, of which texts are written once.

Nothing here is escaped: what draws it does that.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbr2pgo.analyses.table import NUMBERS, Column, Table, Unit, Value, written
from lbr2pgo.support.printable import printable

Json = dict[str, object]

_LONGEST = 400
"""Characters of a name; mangled and demangled ones can be far longer."""


class PageTexts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, made safe to show and not longer than is useful."""
        shown = printable(text)
        cut = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
        return self._numbers.setdefault(cut, len(self._numbers))

    def known(self, text: str | None) -> int | None:
        """The same, of a text that may not be known."""
        return None if text is None else self.number(text)

    def all(self) -> list[str]:
        """All of them, by number."""
        return [*self._numbers]


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
        "found": table.found,
        "notes": [texts.number(note) for note in table.notes],
    }


def _row(columns: Sequence[Column], row: Sequence[Value], texts: PageTexts) -> list[Value]:
    return [_value(column, value, texts) for column, value in zip(columns, row, strict=True)]


def _value(column: Column, value: Value, texts: PageTexts) -> Value:
    if value is None:
        return None
    if column.kind is Unit.ADDRESS:
        # With its slot, as links have it; as a text, since scripts know 53 bits of a number.
        return texts.number(f"{value:#x}")
    if column.kind.is_name:
        return texts.number(written(column.kind, value))
    return float(f"{value:.5g}") if isinstance(value, float) else value
