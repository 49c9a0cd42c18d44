"""How tables and texts stand in a page: plain data, of which texts are written once.

Nothing here is escaped: what draws it does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lbr2pgo.analyses.table import NUMBERS, Column, Table, Unit, Value, written
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports.values import spare
from lbr2pgo.support.printable import printable

Json = dict[str, object]

_LONGEST = 400
"""Characters of a name; mangled and demangled ones can be far longer."""


class PageTexts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}
        self._known: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, made safe to show and not longer than is useful."""
        number = self._known.get(text)
        if number is None:
            shown = printable(text)
            cut = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
            number = self._known[text] = self._shown.setdefault(cut, len(self._shown))
        return number

    def known(self, text: str | None) -> int | None:
        """The same, of a text that may not be known."""
        return None if text is None else self.number(text)

    def all(self) -> list[str]:
        """All of them, by number."""
        return [*self._shown]


def table_data(table: Table, texts: PageTexts) -> Json:
    """A table as its columns and rows."""
    title = texts.number(without_unique_suffix(table.title))
    columns = [*zip(*table.placed_rows, strict=True)]
    constant = {i for i, values in enumerate(columns) if len(values) > 1 == len(set(values))}
    may_go = {column: 1 + n for n, column in enumerate(spare(table.columns, constant))}
    shown = (_values(*each, texts) for each in zip(table.columns, columns, strict=False))
    return {
        "name": table.name,
        "title": title,
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "unit": str(column.kind),
                "digits": NUMBERS[column.kind].digits if column.kind in NUMBERS else None,
                "spare": may_go.get(i, 0),
            }
            for i, column in enumerate(table.columns)
        ],
        "rows": [*map(list, zip(*shown, strict=True))],
        "found": table.found,
        "notes": [texts.number(note) for note in table.notes],
    }


def _values(column: Column, values: Sequence[Value], texts: PageTexts) -> Iterable[Value]:
    if column.kind is Unit.ADDRESS:
        # With its slot, as links have it; as a text, since scripts know 53 bits of a number.
        return (None if value is None else texts.number(f"{value:#x}") for value in values)
    if column.kind.is_name:
        kind = column.kind
        return (None if value is None else texts.number(written(kind, value)) for value in values)
    return (float(f"{value:.5g}") if isinstance(value, float) else value for value in values)
