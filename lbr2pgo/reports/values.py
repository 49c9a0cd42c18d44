"""What of tables is shown to people, in the terminal and on the page alike."""

from __future__ import annotations

from dataclasses import replace

from lbr2pgo.analyses.table import Table


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


HIDDEN = ("latency-rates",)
"""Tables that are for charts and scripts."""
