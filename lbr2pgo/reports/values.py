"""What of tables is shown to people, in the terminal and on the page alike."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit


def shortened(text: str, longest: int) -> str:
    """A text with its middle left out where it is too long: names differ at both ends.

    >>> shortened("std::vector<int>::push_back", 15)
    'std::ve…sh_back'
    """
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"


def told(table: Table) -> Table:
    """The table without the columns of which nothing is known."""
    kept = [
        i for i in range(len(table.columns)) if any(row[i] is not None for row in table.placed_rows)
    ]
    if not table.placed_rows or len(kept) == len(table.columns):
        return table
    rows = tuple(tuple(row[i] for i in kept) for row in table.placed_rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), placed_rows=rows)


def spare(columns: Sequence[Column], constant: Container[int]) -> list[int]:
    """Columns that may go where there is no room for all, by number; the first to go is last.

    Those that are the same in each row go first, then others by their priority: addresses first,
    then other numbers, the last ones first, then names. Addresses go with names where no source
    line tells rows apart.
    """
    has_lines = any(column.kind is Unit.LOCATION for column in columns)

    def order(i: int) -> tuple[bool, int, bool, bool, int]:
        kind = columns[i].kind
        is_address = kind is Unit.ADDRESS
        is_place = kind.is_name or (is_address and not has_lines)
        return i in constant, columns[i].priority, not is_place, is_address, i

    may_go = (
        i
        for i, column in enumerate(columns)
        if column.priority > FIGURE or (i in constant and column.kind.is_name)
    )
    return sorted(may_go, key=order)


HIDDEN = ("latency-rates",)
"""Tables that are for charts and scripts."""
