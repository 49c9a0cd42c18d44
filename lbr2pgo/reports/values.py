"""How values are written for people, in the terminal and on the page alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lbr2pgo.analyses.table import NUMBERS, Table, Unit, Value
from lbr2pgo.program.demangle import without_unique_suffix as without_unique_suffix
from lbr2pgo.support.addresses import in_file


def percentage(value: float) -> str:
    """Per cent; what is not quite none, or not quite all, is not called so.

    >>> percentage(0.5), percentage(0.0), percentage(0.0001), percentage(0.9999)
    ('50.0%', '0.0%', '<0.1%', '>99.9%')
    """
    if 0 < value < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


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


_WRITTEN: dict[Unit, Callable[[Any], str]] = {
    Unit.FUNCTION: without_unique_suffix,
    Unit.ADDRESS: lambda value: f"{in_file(value):#x}",
    Unit.SHARE: percentage,
}


def written(kind: Unit, value: Value) -> str:
    """A value of this kind as people read it."""
    if kind in _WRITTEN:
        return _WRITTEN[kind](value)
    if kind not in NUMBERS:
        return str(value)
    return f"{value:,.{NUMBERS[kind].digits}f}" if isinstance(value, float) else f"{value:,}"


HIDDEN = ("latency-rates",)
"""Tables that are for charts and scripts."""
