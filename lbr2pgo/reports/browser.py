"""A report to walk through in the terminal: functions, source with assembly, branches.

Keys are those of perf's browser (perf: tools/perf/ui/browsers/hists.c and annotate.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.table import Unit, Value, written
from lbr2pgo.reports.model import FunctionView, RanFunctions, Report
from lbr2pgo.reports.page import function_of
from lbr2pgo.reports.page_code import code_parts
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
        yield Static(_safe(self._title, "bold"), id="title")
        yield _Rows(cursor_type="row", cell_padding=1)
        yield Static(_safe("\n".join((*self._foot, "h: keys"))), id="foot")
        yield _Search(placeholder="search")

    def on_mount(self) -> None:
        """Fill it, and begin where it is worth it."""
        self._fill()
        addresses = [row.address for row in self.shown]
        if self._at in addresses and self._at is not None:
            self.table.move_cursor(row=addresses.index(self._at))
        else:
            self.action_hottest(0)

    @property
    def table(self) -> _Rows:
        """The lines."""
        return self.query_one(_Rows)

    def _fill(self) -> None:
        table = self.table
        table.clear(columns=True)
        for name in self._columns:
            table.add_column(_safe(name))
        for row in self.shown:
            style = "red" if row.heat >= _RED else "green" if row.heat >= _GREEN else ""
            first, *others = row.cells
            table.add_row(_safe(first, style), *map(_safe, others))
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
            self._fill()
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


class Browser(App[None]):
    """Walks through a report whose functions can be opened."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, report: Report, opened: Callable[[int], FunctionView | None]) -> None:
        """Open functions by their start."""
        super().__init__()
        self._report, self._opened = report, opened

    def on_mount(self) -> None:
        """Begin with the functions."""
        self.push_screen(self._functions(self._report.ran))

    def _functions(self, ran: RanFunctions | None) -> Listing:
        rows = [] if ran is None else [*self._function_rows(ran)]
        columns = ("instructions", "branches", "mispredicted", "function", "source line")
        return Listing(self._report.title, columns, rows, self._report.summary, filters=True)

    def _function_rows(self, ran: RanFunctions) -> Iterator[Listed]:
        for row, pieces in zip(ran.table.records(), ran.pieces, strict=True):
            shares = [_share(row[f"{what}_share"]) for what in ("instructions", "branches")]
            name, start = written(Unit.FUNCTION, row["function"]), pieces[0][0]
            cells = (*shares, _count(row["mispredicted"]), name, str(row["line"] or ""))
            heat = row["instructions_share"] or row["branches_share"] or 0
            yield Listed(cells, float(heat), partial(self.code, start), start)

    def code(self, start: int, at: int | None = None) -> Listing | None:
        """A function by its start, at the line of an address; None where it can't be shown."""
        view = self._opened(start)
        if view is None:
            return None
        columns = ("executed", "taken", "mispredicted", "source and assembly")
        title = f"{written(Unit.FUNCTION, view.name)}  {_share(view.share)} of all instructions"
        return Listing(title, columns, [*self._code_rows(view)], at=at)

    def _code_rows(self, view: FunctionView) -> Iterator[Listed]:
        """Assembly in the order of its addresses, each part behind its source line."""
        branches = {int(branch.address): branch for branch in view.branches}
        source = () if view.source is None else view.source.records()
        texts = {row["line"]: row["text"] for row in source}
        count, address, text, line, taken = (
            [column.name for column in view.code.columns].index(name)
            for name in ("count", "address", "instruction", "line", "taken_share")
        )
        whole = sum(int(row[count] or 0) for row in view.code.placed_rows) or 1
        before: Value = None
        for part in code_parts(view.code):
            first = part[0]
            if len(part) > 1:
                yield Listed(("", "", "", f"    … {len(part)} instructions that never ran"))
                before = None
                continue
            if first[line] != before and first[line] is not None:
                yield Listed(("", "", "", f"{first[line]}  {texts.get(first[line]) or ''}"))
            before, place = first[line], int(first[address] or 0)
            facts = branches.get(place)
            missed = None if facts is None else facts.mispredicted
            cells = (
                _count(first[count]), _share(first[taken]), _count(missed),
                f"    {written(Unit.ADDRESS, place)}  {first[text]}",
            )  # fmt: skip
            heat = int(first[count] or 0) / whole
            yield Listed(cells, heat, partial(self._branch, facts) if facts else None, place)

    def _branch(self, facts: BranchFacts) -> Listing:
        """Where a branch went, and what else is known of it."""
        total = sum(target.count for target in facts.targets) or 1
        rows = [
            Listed(
                (_share(each.count / total), _count(each.count), _count(each.mispredicted),
                 each.function, each.line or "", each.case or ""),
                each.count / total, self._leads(each.address), each.address,
            ) for each in facts.targets
        ]  # fmt: skip
        columns = ("share", "taken", "mispredicted", "to", "source line", "case")
        return Listing(
            f"Branch at {written(Unit.ADDRESS, facts.address)}", columns, rows, [*_told(facts)]
        )

    def _leads(self, address: int | None) -> Callable[[], Listing | None] | None:
        ran = self._report.ran
        start = None if ran is None or address is None else function_of(ran, address)
        return None if start is None else partial(self.code, start, address)


def _told(facts: BranchFacts) -> Iterator[str]:
    if facts.taken is not None and facts.not_taken is not None:
        share = facts.taken / max(facts.taken + facts.not_taken, 1)
        bounds = f"({_share(facts.low)} to {_share(facts.high)})"
        yield f"taken {_share(share)} {bounds} of {facts.taken + facts.not_taken:,} times"
    if facts.predicted is not None and facts.mispredicted is not None:
        share = facts.mispredicted / max(facts.predicted + facts.mispredicted, 1)
        bounds = f"({_share(facts.rate_low)} to {_share(facts.rate_high)})"
        yield f"mispredicted {_share(share)} {bounds} of those taken"
    yield from facts.reasons


def _share(value: Value) -> str:
    return "" if value is None else written(Unit.SHARE, value)


def _count(value: Value) -> str:
    return "" if value is None else written(Unit.COUNT, value)


def _safe(text: str, style: str = "") -> Text:
    """Text in which nothing is markup, and nothing steers the terminal."""
    return Text("\n".join(map(printable, text.split("\n"))), style)
