"""The report in the terminal, walked through by textual's own pilot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from builders.pages import HOSTILE, toy_report
from builders.recordings import PIE, RECORDING

from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.model import Report

textual = pytest.importorskip("textual", reason="textual is not installed")

from lbr2pgo.reports.browser import Browser  # noqa: E402
from lbr2pgo.reports.code_screen import arrow  # noqa: E402
from lbr2pgo.reports.list_screen import HELP, Listing  # noqa: E402

Steps = Callable[[Any, "Walk"], Awaitable[None]]


class Walk:
    """What is on the screen."""

    def __init__(self, app: Browser) -> None:
        self.app = app

    @property
    def screen(self) -> Listing:
        found = self.app.screen
        assert isinstance(found, Listing)
        return found

    @property
    def lines(self) -> list[str]:
        """Of the list, as they are drawn."""
        table = self.screen.table
        rows = [table.get_row_at(i) for i in range(table.row_count)]
        return [" ".join(cell.plain for cell in row).strip() for row in rows]

    @property
    def line(self) -> str:
        """The one that is chosen."""
        return self.lines[self.screen.table.cursor_row]

    def text(self, name: str) -> str:
        return str(self.screen.query_one(f"#{name}", textual.widgets.Static).render())


def walk(report: Report, steps: Steps) -> Browser:
    """Open a report and do the steps."""
    assert report.open_function is not None
    app = Browser(report, report.open_function)

    async def all_steps() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            await steps(pilot, Walk(app))

    asyncio.run(all_steps())
    return app


@pytest.fixture(scope="module")
def recorded() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, libraries=False, views=1, source=True))


def test_functions_lead_to_code_code_to_branches_and_branches_to_code(recorded: Report) -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        assert recorded.ran is not None
        assert len(seen.lines) == len(recorded.ran.table)
        assert " run " in seen.line
        assert seen.text("foot").splitlines()[:-1] == list(recorded.summary)
        await pilot.press("enter")
        assert seen.text("title").startswith("run ")
        code = [row.cells for row in seen.screen.shown]
        assert any("interp.c:" in line for line in seen.lines)
        assert "0x" in seen.line
        view = recorded.functions[0]
        hottest = max(int(count or 0) for count in view.code.column("count"))
        assert seen.line.startswith(f"{hottest:,}")
        branch = next(each for each in view.branches if each.targets)
        shown = [row.address for row in seen.screen.shown]
        seen.screen.table.move_cursor(row=shown.index(branch.address))
        await pilot.press("right")
        assert seen.text("title") == f"Branch at {branch.address:#x}"
        assert len(seen.lines) == len(branch.targets)
        assert f"{branch.targets[0].count:,}" in seen.lines[0]
        target = next(i for i, row in enumerate(seen.screen.shown) if row.opens)
        where = seen.screen.shown[target].address
        seen.screen.table.move_cursor(row=target)
        await pilot.press("enter")
        assert f"{where:#x}" in seen.line
        for title in ("Branch at", "run "):
            await pilot.press("escape" if title == "run " else "left")
            assert seen.text("title").startswith(title)
        assert [row.cells for row in seen.screen.shown] == code
        await pilot.press("q")
        assert seen.text("title") == recorded.title
        await pilot.press("q")

    assert walk(recorded, steps)._exit


def test_code_is_shown_with_and_without_source_by_offsets_and_by_shares(recorded: Report) -> None:
    view = recorded.functions[0]
    hottest = max(int(count or 0) for count in view.code.column("count"))
    whole = sum(int(count or 0) for count in view.code.column("count"))

    async def steps(pilot: Any, seen: Walk) -> None:
        await pilot.press("enter")
        code, line = seen.lines, seen.line
        place = int(line.split("0x")[1].split()[0], 16)
        await pilot.press("s")
        assert seen.lines == [each for each in code if not each.startswith("interp.c:")]
        assert seen.line == line
        await pilot.press("s", "o")
        assert seen.line == line.replace(f"{place:#x}", f"{place - view.start:+x}")
        assert not any(f"    {view.start:#x}"[:7] in each for each in seen.lines)
        await pilot.press("o", "t")
        assert seen.line.split()[0] == f"{hottest / whole:.1%}"
        await pilot.press("t")
        assert seen.lines == code

    walk(recorded, steps)


def test_code_stays_as_it_is_shown_in_the_next_function_and_back(recorded: Report) -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        await pilot.press("enter")
        code = seen.lines
        branch = next(each for each in recorded.functions[0].branches
                      if any(row.opens for row in [*seen.screen.shown]
                             if row.address == each.address))  # fmt: skip
        places = [row.address for row in seen.screen.shown]
        seen.screen.table.move_cursor(row=places.index(branch.address))
        await pilot.press("enter")
        row = next(i for i, row in enumerate(seen.screen.shown) if row.opens)
        seen.screen.table.move_cursor(row=row)
        await pilot.press("enter", "s", "j")
        assert not any(line.startswith("interp.c:") for line in seen.lines)
        await pilot.press("q", "q")
        assert seen.lines == [line for line in code if not line.startswith("interp.c:")]
        assert f"{branch.address:#x}" in seen.line

    walk(recorded, steps)


@pytest.mark.parametrize(
    ("source", "targets", "drawn"),
    [
        (1, [3, 4], {1: "┌─", 2: "│ ", 3: "├▸", 4: "└▸"}),
        (2, [0], {0: "┌▸", 1: "│ ", 2: "└─"}),
        (1, [0, 2], {0: "┌▸", 1: "├─", 2: "└▸"}),
        (1, [1], {1: "↻ "}),
        (5, [], {}),
    ],
)
def test_arrows_are_drawn_from_line_to_line(
    source: int, targets: list[int], drawn: dict[int, str]
) -> None:
    assert arrow(source, targets) == drawn


def test_an_arrow_leads_from_the_jump_at_hand_to_where_it_led(recorded: Report) -> None:
    view = recorded.functions[0]

    async def steps(pilot: Any, seen: Walk) -> None:
        await pilot.press("enter")
        places = {row.address: i for i, row in enumerate(seen.screen.shown)}

        def arrow() -> dict[int, str]:
            table = seen.screen.table
            cells = (table.get_row_at(i)[3].plain.strip() for i in range(table.row_count))
            return {i: cell for i, cell in enumerate(cells) if cell}

        for branch in view.branches:
            source = places[branch.address]
            seen.screen.table.move_cursor(row=source)
            await pilot.pause()
            targets = {places[to.address] for to in branch.targets if to.address in places}
            shown = arrow()
            assert {i for i, cell in shown.items() if cell[-1] == "▸"} == targets
            ends = [source, *targets]
            assert sorted(shown) == [*range(min(ends), max(ends) + 1)] * bool(targets)
        await pilot.press("j")
        assert arrow() == {}
        seen.screen.table.move_cursor(row=places[view.branches[0].address])
        await pilot.press("j")
        assert (len(arrow()) > 1) == bool(view.branches[0].targets)

    walk(recorded, steps)


def test_tab_goes_down_by_heat_and_h_back_to_the_hottest(recorded: Report) -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        await pilot.press("a")
        heats = [row.heat for row in seen.screen.shown]
        at = lambda: heats[seen.screen.table.cursor_row]  # noqa: E731
        assert at() == max(heats)
        visited = {seen.screen.table.cursor_row}
        for _ in range(5):
            before = at()
            await pilot.press("tab")
            assert at() <= before
            visited.add(seen.screen.table.cursor_row)
        assert len(visited) == 6
        await pilot.press("shift+tab")
        assert at() >= before
        await pilot.press("H")
        assert at() == max(heats)

    walk(recorded, steps)


def test_searching_shows_functions_alone_and_goes_to_lines_of_code(recorded: Report) -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        every = seen.lines
        await pilot.press("slash", *"Main", "enter")
        assert seen.lines == [line for line in every if "main" in line.lower()] != []
        await pilot.press("escape")
        assert seen.lines == every
        await pilot.press("slash", *"xyzzy", "escape")
        assert seen.lines == every
        await pilot.press("slash", *"xyzzy", "enter")
        assert seen.lines == []
        await pilot.press("enter", "tab", "escape", "H", "enter")
        holds = [i for i, line in enumerate(seen.lines) if "jmp" in line]
        here = seen.screen.table.cursor_row
        found = []
        await pilot.press("slash", *"jmp", "enter")
        for _ in holds:
            found.append(seen.screen.table.cursor_row)
            await pilot.press("n")
        assert sorted(found) == holds
        assert found[0] == next((i for i in holds if i > here), holds[0])

    walk(recorded, steps)


@pytest.mark.parametrize("key", ["h", "question_mark"])
def test_help_tells_every_key(key: str, recorded: Report) -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        await pilot.press(key)
        assert seen.lines == HELP.splitlines()
        await pilot.press("q")
        assert seen.text("title") == recorded.title

    walk(recorded, steps)


def test_a_hostile_name_is_text() -> None:
    async def steps(pilot: Any, seen: Walk) -> None:
        shown = "\n".join(seen.lines)
        assert HOSTILE[0] in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        for _ in seen.lines:
            await pilot.press("enter", "q", "down")

    walk(toy_report(HOSTILE), steps)
