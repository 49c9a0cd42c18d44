"""A report to walk through in the terminal: functions, source with assembly, branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.app import App

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.table import Unit, written
from lbr2pgo.reports.code_screen import CodeListing, Ways
from lbr2pgo.reports.list_screen import Listed, Listing, count_cell, share_cell
from lbr2pgo.reports.model import FunctionView, RanFunctions, Report
from lbr2pgo.reports.page import function_of


class Browser(App[None]):
    """Walks through a report whose functions can be opened."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, report: Report, opened: Callable[[int], FunctionView | None]) -> None:
        """Open functions by their start."""
        super().__init__()
        self._report, self._opened, self._ways = report, opened, Ways()

    def on_mount(self) -> None:
        """Begin with the functions."""
        self.push_screen(self._functions(self._report.ran))

    def _functions(self, ran: RanFunctions | None) -> Listing:
        rows = [] if ran is None else [*self._function_rows(ran)]
        columns = ("instructions", "branches", "mispredicted", "function", "source line")
        return Listing(self._report.title, columns, rows, self._report.summary, filters=True)

    def _function_rows(self, ran: RanFunctions) -> Iterator[Listed]:
        for row, pieces in zip(ran.table.records(), ran.pieces, strict=True):
            shares = [share_cell(row[f"{what}_share"]) for what in ("instructions", "branches")]
            name, start = written(Unit.FUNCTION, row["function"]), pieces[0][0]
            cells = (*shares, count_cell(row["mispredicted"]), name, str(row["line"] or ""))
            heat = row["instructions_share"] or row["branches_share"] or 0
            yield Listed(cells, float(heat), partial(self.code, start), start)

    def code(self, start: int, at: int | None = None) -> Listing | None:
        """A function by its start, at the line of an address; None where it can't be shown."""
        view = self._opened(start)
        if view is None:
            return None
        return CodeListing(view, self._branch, self._ways, at)

    def _branch(self, facts: BranchFacts) -> Listing:
        """Where a branch went, and what else is known of it."""
        total = sum(target.count for target in facts.targets) or 1
        rows = [
            Listed(
                (share_cell(each.count / total), count_cell(each.count),
                 count_cell(each.mispredicted), each.function, each.line or "", each.case or ""),
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
        bounds = f"({share_cell(facts.low)} to {share_cell(facts.high)})"
        yield f"taken {share_cell(share)} {bounds} of {facts.taken + facts.not_taken:,} times"
    if facts.predicted is not None and facts.mispredicted is not None:
        share = facts.mispredicted / max(facts.predicted + facts.mispredicted, 1)
        bounds = f"({share_cell(facts.rate_low)} to {share_cell(facts.rate_high)})"
        yield f"mispredicted {share_cell(share)} {bounds} of those taken"
    yield from facts.reasons
