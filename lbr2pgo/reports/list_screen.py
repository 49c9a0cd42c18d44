"""Lines of which one is chosen, as a screen of the terminal.

Keys are those of perf's browser (perf: tools/perf/ui/browsers/hists.c and annotate.c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from lbr2pgo.analyses.table import Unit, Value, written
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.printable import printable

HELP = """\
Up Down PgUp PgDn   go through the lines
Enter Right a       open: a function, a branch, where a branch led
Left Esc q          back; q in the list of functions ends it
Tab Shift+Tab       the next line by heat, and the one before
H                   the hottest line
/                   search (functions: show those alone)
n                   the next line that holds it
s                   of a function: with its source, or assembly alone
o                   addresses, or bytes from its start
t                   how often lines ran, or which share of it that is
j                   an arrow from the jump at hand to where it led
h ?                 this help
"""
_RED, _GREEN = 0.05, 0.005
"""Shares from which on lines have a colour (perf: tools/perf/ui/helpline.h, MIN_RED, MIN_GREEN)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of a list."""

    cells: tuple[str, ...]
    heat: float = 0.0
    """Its share of all, from 0 to 1."""
    opens: Callable[[], Listing | None] | None = None
    """What Enter leads to."""
    address: int | None = None

    def holds(self, words: str) -> bool:
        """Whether it has these words, in any case."""
        return words.lower() in "\0".join(self.cells).lower()


class _Rows(DataTable[Text]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,a", "screen.open"),
        Binding("left,escape,q", "screen.back"),
        Binding("tab", "screen.hottest(1)"),
        Binding("shift+tab", "screen.hottest(-1)"),
        Binding("H", "screen.hottest(0)"),
        Binding("slash", "screen.search"),
        Binding("n", "screen.next"),
        Binding("h,question_mark", "screen.help"),
    ]


class _Search(Input):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "screen.leave_search")]


class Listing(Screen[None]):
    """Lines of which one is chosen."""

    CSS = "_Rows { height: 1fr; } #title, #foot { height: auto; } _Search { display: none; }"

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Listed],
        foot: Sequence[str] = (),
        at: int | None = None,
        *,
        filters: bool = False,
    ) -> None:
        """Begin `at` the line of this address, or the hottest one; `filters`: searching does."""
        super().__init__()
        self._title, self._columns, self._foot = title, columns, foot
        self._rows = self.shown = [*rows]
        self._at, self._filters, self._words = at, filters, ""

    def compose(self) -> ComposeResult:
        """The title, the lines, and what there is to say of them."""
        yield Static(safe(self._title, "bold"), id="title")
        yield _Rows(cursor_type="row", cell_padding=1)
        yield Static(safe("\n".join((*self._foot, "h: keys"))), id="foot")
        yield _Search(placeholder="search")

    def on_mount(self) -> None:
        """Fill it, and begin where it is worth it."""
        self.fill()
        if self._at is None or not self.go_to(self._at):
            self.action_hottest(0)

    def go_to(self, address: int) -> bool:
        """Go to the line of an address; gives whether there is one."""
        addresses = [row.address for row in self.shown]
        if address not in addresses:
            return False
        self.table.move_cursor(row=addresses.index(address))
        return True

    @property
    def table(self) -> _Rows:
        """The lines."""
        return self.query_one(_Rows)

    def fill(self) -> None:
        """Draw the lines that are shown."""
        table = self.table
        table.clear(columns=True)
        for name in self._columns:
            table.add_column(safe(name))
        for row in self.shown:
            style = "red" if row.heat >= _RED else "green" if row.heat >= _GREEN else ""
            first, *others = row.cells
            table.add_row(safe(first, style), *map(safe, others))
        table.focus()

    def action_open(self) -> None:
        """Open what the line leads to."""
        row = self.shown[self.table.cursor_row] if self.shown else None
        found = row.opens() if row is not None and row.opens is not None else None
        if found is None:
            self.app.bell()
        else:
            self.app.push_screen(found)

    def action_back(self) -> None:
        """Go back, from the first list to where one came from."""
        if self._filters and self._words:
            self._search("")
        elif self._filters:
            self.app.exit()
        else:
            self.app.pop_screen()

    def action_hottest(self, step: int) -> None:
        """Go to the hottest line, or so many on in the order of heat."""
        order = sorted(range(len(self.shown)), key=lambda i: -self.shown[i].heat)
        if order:
            place = (order.index(self.table.cursor_row) + step) % len(order) if step else 0
            self.table.move_cursor(row=order[place])

    def action_search(self) -> None:
        """Ask what for."""
        self.query_one(_Search).styles.display = "block"
        self.query_one(_Search).focus()

    def action_leave_search(self) -> None:
        """Look for nothing."""
        self.query_one(_Search).styles.display = "none"
        self.table.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for what was asked."""
        self.action_leave_search()
        self._search(event.value)

    def _search(self, words: str) -> None:
        self._words = words
        if self._filters:
            self.shown = [row for row in self._rows if row.holds(words)]
            self.fill()
        else:
            self.action_next()

    def action_next(self) -> None:
        """Go to the next line that holds what was looked for, from the end to the beginning."""
        here, size = self.table.cursor_row, len(self.shown)
        for step in range(1, size + 1) if self._words else ():
            if self.shown[(here + step) % size].holds(self._words):
                self.table.move_cursor(row=(here + step) % size)
                return
        self.app.bell()

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(
            Listing("Keys", ("",), [Listed((line,)) for line in HELP.splitlines()])
        )


def share_cell(value: Value) -> str:
    """As a cell."""
    return "" if value is None else written(Unit.SHARE, value)


def count_cell(value: Value) -> str:
    """As a cell."""
    return "" if value is None else written(Unit.COUNT, value)


def safe(text: str, style: str = "") -> Text:
    """Text in which nothing is markup, and nothing steers the terminal."""
    return Text("\n".join(map(printable, text.split("\n"))), style)
