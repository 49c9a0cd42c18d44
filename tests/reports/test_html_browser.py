"""The page in a real browser: Debian's chromium, without a window and without a network."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders.pages import flame_report, hostile_report, toy_report
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.reports import html
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.model import Report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

OPTIONS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Browser:
    """Opens reports; what the pages complain about or ask for is kept."""

    def __init__(self, chromium: playwright.Browser, directory: Path) -> None:
        self.chromium, self.directory = chromium, directory
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.opened: list[str] = []

    def open(self, report: Report, **context: object) -> playwright.Page:
        path = self.directory / "report.html"
        html.write(report, path)
        page = self.chromium.new_context(**context).new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())
        self.opened.append(path.as_uri())
        return page


@pytest.fixture(scope="module")
def chromium(tool: Callable[[str], str]) -> Iterator[playwright.Browser]:
    path = tool("chromium")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(
            executable_path=path, args=list(OPTIONS), chromium_sandbox=False
        )
        yield made
        made.close()


@pytest.fixture
def browser(chromium: playwright.Browser, tmp_path: Path) -> Iterator[Browser]:
    made = Browser(chromium, tmp_path)
    yield made
    assert made.complaints == []
    assert made.requests == made.opened
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="module")
def recorded() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, top=100, views=3))


def cells(page: playwright.Page, table: str, column: int) -> list[str]:
    found = page.locator(f"#t-{table} tbody tr td:nth-child({column})")
    return [text.strip() for text in found.all_inner_texts()]


def test_tables_sort_by_value(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    table = recorded.table("hot-branches")
    assert table is not None
    counts = sorted(table.column("count"))[:15]  # type: ignore[type-var]
    header = page.locator("#t-hot-branches th").nth(1)
    header.click()
    playwright.expect(header).to_have_attribute("aria-sort", "ascending")
    assert cells(page, "hot-branches", 2) == [f"{count:,}" for count in counts]
    header.click()
    playwright.expect(header).to_have_attribute("aria-sort", "descending")
    assert cells(page, "hot-branches", 2)[0] == f"{max(table.column('count')):,}"  # type: ignore[type-var]


def test_addresses_sort_as_numbers(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    table = recorded.table("hot-branches")
    assert table is not None
    at = [column.name for column in table.columns].index("from_address")
    header = page.locator("#t-hot-branches th").nth(at)
    header.click()
    playwright.expect(header).to_have_attribute("aria-sort", "ascending")
    expected = sorted(table.column("from_address"))[:15]  # type: ignore[type-var]
    assert cells(page, "hot-branches", at + 1) == [f"{address:#x}" for address in expected]


def test_the_keyboard_sorts_too(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    header = page.locator("#t-hot-branches th").first
    header.locator("[tabindex='0']").focus()
    page.keyboard.press("Enter")
    playwright.expect(header).to_have_attribute("aria-sort", "ascending")


def test_tables_filter(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    table = recorded.table("hot-branches")
    assert table is not None
    address = f"{table.column('from_address')[0]:#x}"
    page.locator("#t-hot-branches input[type=search]").fill(address)
    rows = page.locator("#t-hot-branches tbody tr").all_inner_texts()
    assert rows
    assert all(address in row for row in rows)
    page.locator("#t-hot-branches input[type=search]").fill("no such name")
    assert cells(page, "hot-branches", 1) == ["Nothing found."]


def test_tab_begins_with_a_way_past_the_links(browser: Browser) -> None:
    page = browser.open(toy_report())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_branch_leads_to_its_function_and_back(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    view = recorded.functions[1]
    details = page.locator(f"#f-{view.start:x}")
    assert details.get_attribute("open") is None
    first = page.locator(f"#t-hot-branches a[href='#f-{view.start:x}']").first
    page.locator("#t-hot-branches input[type=search]").fill(view.name)
    first.click()
    assert details.get_attribute("open") is not None
    back = details.locator("a[href='#t-hot-branches']").first
    words = back.get_attribute("data-search")
    back.click()
    search = page.locator("#t-hot-branches input[type=search]")
    assert search.input_value() == words == view.name
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('section').id") == "t-hot-branches"


def test_functions_are_drawn_when_they_are_seen(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    page.locator("#functions").scroll_into_view_if_needed()
    drawing = page.locator(".drawing").first
    drawing.locator("svg").wait_for()
    graph = recorded.functions[0].graph
    seen = sum(block.count > 0 for block in graph.blocks)
    assert drawing.locator(".node").count() == min(seen, 120)
    assert drawing.locator(".edge").count() > 0
    drawing.locator(".node").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash").startswith("#i-")


def test_charts_are_drawn(browser: Browser) -> None:
    report = toy_report()
    page = browser.open(report)
    assert page.locator(".plot canvas").count() == len(report.timings) > 0


def test_the_flame_graph_zooms_and_searches_by_keyboard(browser: Browser) -> None:
    page = browser.open(flame_report())
    frames = page.locator("g.frame")
    assert frames.count() == 6  # all, main, dispatch with g and h below it, and g
    page.locator("#flame-search").fill("dispatch")
    assert page.locator("#flame-found").inner_text() == "66.7 % of samples"
    frame = page.locator("g.frame[name=dispatch]")
    narrow = frame.bounding_box()["width"]  # type: ignore[index]
    frame.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(
        "before => document.querySelector('g.frame[name=dispatch]').getBoundingClientRect().width"
        " > before * 1.3", arg=narrow,
    )  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_system_says_and_as_one_chooses(
    browser: Browser, scheme: str
) -> None:
    page = browser.open(toy_report(), color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    assert page.evaluate(colour) == (light if scheme == "light" else dark)
    button = page.locator("#theme")
    button.click()
    assert (page.evaluate(colour), button.inner_text()) == (light, "Colours: light")
    button.click()
    assert (page.evaluate(colour), button.inner_text()) == (dark, "Colours: dark")
    page.reload()
    assert page.evaluate(colour) == dark
    browser.opened *= 2


def test_a_hostile_name_does_nothing(browser: Browser) -> None:
    report = hostile_report()
    page = browser.open(report)
    for section in page.locator("section").all():
        section.scroll_into_view_if_needed()
    for details in page.locator("details:not([open]) summary").all():
        details.click()
    for header in page.locator("#t-hot-branches th").all():
        header.click()
    for name in page.locator("td a, figcaption a, .node").all()[:40]:
        name.dispatch_event("mouseover")
    page.locator("#t-hot-branches input[type=search]").fill("<img src=x onerror")
    page.locator("#flame-search").fill("<img src=x (")
    page.locator("g.frame").nth(1).dispatch_event("click")
    assert page.locator("#harm").count() == 0
    assert page.evaluate("document.body.dataset.harm") is None
    assert page.locator("img").count() == 0
    assert page.locator("g.frame").count() > 1


def test_the_page_of_a_large_program(browser: Browser, corpus: Callable[[str], Path]) -> None:
    profile, binary = corpus("sqlite/sq.perf.data.zst"), corpus("sqlite/sq.zst")
    page = browser.open(make_report(ReportOptions((profile,), binary, top=500, views=12)))
    page.locator("#functions").scroll_into_view_if_needed()
    page.locator(".drawing svg").first.wait_for()
    assert page.locator("#t-hot-branches tbody tr").count() == 15


def test_pictures_of_the_documentation_can_be_made_again(
    tool: Callable[[str], str], run: Callable[..., object], tmp_path: Path
) -> None:
    tool("chromium")
    run(sys.executable, TESTBINS.parent / "docs" / "make_pictures.py", tmp_path)
    assert ">valid&#160;fall-throughs" in (tmp_path / "convert.svg").read_text()
    picture = (tmp_path / "report.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1280, 900)
