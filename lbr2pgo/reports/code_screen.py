"""A function in the terminal: its source with assembly, in the ways that perf's browser has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.table import Unit, Value, written
from lbr2pgo.reports.list_screen import Listed, Listing, count_cell, safe, share_cell
from lbr2pgo.reports.model import FunctionView
from lbr2pgo.reports.page_code import code_parts
from lbr2pgo.support.dataclass import dataclass

_COLUMNS = ("executed", "taken", "mispredicted", "", "source and assembly")
_ARROW = 3
"""The column between what is known of a line and its text."""


@dataclass(slots=True)
class Ways:
    """How code is shown, of all functions; not frozen, for keys change it."""

    source: bool = True
    """Each line of it above its assembly."""
    offsets: bool = False
    """Bytes from the function's start in place of addresses."""
    shares: bool = False
    """Of all instructions that ran in it, in place of how often each did."""
    arrows: bool = True
    """From the jump at hand to where it led in the function."""


class CodeListing(Listing):
    """A function, each branch of which opens what is known of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "turn('source')"),
        Binding("o", "turn('offsets')"),
        Binding("t", "turn('shares')"),
        Binding("j", "turn('arrows')"),
    ]

    def __init__(
        self,
        view: FunctionView,
        opens: Callable[[BranchFacts], Listing],
        ways: Ways,
        at: int | None,
    ) -> None:
        """Begin at the line of an address, or the hottest one."""
        self._view, self._opens, self._ways = view, opens, ways
        self._drawn = replace(ways)
        self._branches = {int(branch.address): branch for branch in view.branches}
        self._pointed: Iterable[int] = ()
        """Lines that have a piece of the arrow."""
        title = f"{written(Unit.FUNCTION, view.name)}  {share_cell(view.share)} of all instructions"
        super().__init__(title, _COLUMNS, self._lines(), at=at)

    def action_turn(self, way: str) -> None:
        """Show code in the other one of two ways."""
        setattr(self._ways, way, not getattr(self._ways, way))
        self._redraw()

    def on_screen_resume(self) -> None:
        """Draw it anew where another function's keys have changed how."""
        if self._drawn != self._ways:
            self._redraw()

    def _redraw(self) -> None:
        """With the same line at hand."""
        here = self.table.cursor_row
        below = (row.address for row in self.shown[here:] if row.address is not None)
        address = next(below, None)
        self._drawn, self.shown = replace(self._ways), self._lines()
        self.fill()
        if address is not None:
            self.go_to(address)
        self._point()

    def _lines(self) -> list[Listed]:
        return [*code_lines(self._view, self._branches, self._opens, self._ways)]

    def on_data_table_row_highlighted(self, _: DataTable.RowHighlighted) -> None:
        """Draw the arrow of the line at hand."""
        self._point()

    def _point(self) -> None:
        pieces = self._arrow() if self._ways.arrows else {}
        for row in {*self._pointed, *pieces}:
            if row < self.table.row_count:
                self.table.update_cell_at(Coordinate(row, _ARROW), safe(pieces.get(row, "")))
        self._pointed = pieces.keys()

    def _arrow(self) -> dict[int, str]:
        """Pieces of it, by their lines."""
        here = self.table.cursor_row
        address = self.shown[here].address if self.shown else None
        facts = None if address is None else self._branches.get(address)
        rows = {row.address: number for number, row in enumerate(self.shown)}
        targets = () if facts is None else facts.targets
        return arrow(here, [rows[each.address] for each in targets if each.address in rows])


def arrow(source: int, targets: list[int]) -> dict[int, str]:
    """From a line to some others, by lines."""
    if targets == [source]:
        return {source: "↻ "}
    if not targets:
        return {}
    first, last = min(source, *targets), max(source, *targets)
    pieces = {}
    for row in range(first, last + 1):
        is_end = row == source or row in targets
        corner = "┌" if row == first else "└" if row == last else "├" if is_end else "│"
        pieces[row] = corner + ("▸" if row in targets else "─" if row == source else " ")
    return pieces


def code_lines(
    view: FunctionView,
    branches: Mapping[int, BranchFacts],
    opens: Callable[[BranchFacts], Listing],
    ways: Ways,
) -> Iterator[Listed]:
    """Assembly in the order of its addresses, each part behind its source line."""
    source = () if view.source is None else view.source.records()
    texts = {row["line"]: row["text"] for row in source}
    ran, address, text, line, taken = (
        [column.name for column in view.code.columns].index(name)
        for name in ("count", "address", "instruction", "line", "taken_share")
    )
    whole = sum(int(row[ran] or 0) for row in view.code.placed_rows) or 1
    before: Value = None
    for part in code_parts(view.code):
        first = part[0]
        if len(part) > 1:
            yield Listed(("", "", "", "", f"    … {len(part)} instructions that never ran"))
            before = None
            continue
        if ways.source and first[line] != before and first[line] is not None:
            yield Listed(("", "", "", "", f"{first[line]}  {texts.get(first[line]) or ''}"))
        before, place = first[line], int(first[address] or 0)
        facts, heat = branches.get(place), int(first[ran] or 0) / whole
        missed = None if facts is None else facts.mispredicted
        where = f"{place - view.start:+x}" if ways.offsets else written(Unit.ADDRESS, place)
        cells = (
            share_cell(heat) if ways.shares else count_cell(first[ran]), share_cell(first[taken]),
            count_cell(missed), "", f"    {where}  {first[text]}",
        )  # fmt: skip
        yield Listed(cells, heat, partial(opens, facts) if facts else None, place)
