"""The page in a real browser: Debian's chromium, without a window and without a network."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders.pages import flame_report, hostile_report, toy_report
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.analyses.table import Column, Table, Unit
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
    moved = ((".", str(TESTBINS)),)
    return make_report(
        ReportOptions(
            (RECORDING,), PIE, libraries=False, top=100, views=3, source=True, source_dirs=moved
        )
    )


def cells(page: playwright.Page, table: str, column: str) -> list[str]:
    """Texts of a column of the rows that are shown, by its name for scripts."""
    names = page.locator(f"#t-{table} th").evaluate_all("all => all.map(th => th.dataset.column)")
    found = page.locator(f"#t-{table} tbody td:nth-child({names.index(column) + 2})")
    return [text.strip() for text in found.all_inner_texts()]


def test_tables_sort_by_value_and_by_keyboard(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded, viewport={"width": 1920, "height": 900})
    table = recorded.table("hot-branches")
    assert table is not None
    counts = sorted(table.column("count"), reverse=True)[:15]  # type: ignore[type-var]
    header = page.locator("#t-hot-branches th[data-column=count]")
    header.locator("button").focus()
    page.keyboard.press("Enter")
    playwright.expect(header).to_have_attribute("aria-sort", "descending")
    assert cells(page, "hot-branches", "count") == [f"{count:,}" for count in counts]
    header.locator("button").click()
    playwright.expect(header).to_have_attribute("aria-sort", "ascending")
    least = min(table.column("count"))  # type: ignore[type-var]
    assert cells(page, "hot-branches", "count")[0] == f"{least:,}"
    page.locator("#t-hot-branches th[data-column=from_address] button").click()
    expected = sorted(table.column("from_address"))[:15]  # type: ignore[type-var]
    assert cells(page, "hot-branches", "from_address") == [f"{each:#x}" for each in expected]


def test_tables_filter_turn_pages_and_tell_all_of_a_row(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    table = recorded.table("hot-branches")
    assert table is not None
    section = page.locator("#t-hot-branches")
    section.get_by_role("button", name="Next").click()
    assert "16 to 30" in section.locator(".rows").inner_text()
    section.get_by_role("button", name="Show all").click()
    assert section.locator("tbody tr").count() == len(table)
    address = f"{table.column('from_address')[0]:#x}"
    section.locator("input[type=search]").fill(address)
    more = section.get_by_role("button", name="All about this row").first
    more.click()
    shown = section.locator("tr.all dl").inner_text()
    row = next(table.records())
    assert address in shown
    assert str(row["from_function"]) in shown
    assert str(row["to_line"]) in shown
    more.click()
    assert section.locator("tr.all").count() == 0
    section.locator("input[type=search]").fill("no such name")
    assert "Nothing found." in section.locator("tbody").inner_text()


def test_tab_begins_with_a_way_past_the_links(browser: Browser) -> None:
    page = browser.open(toy_report())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_branch_leads_to_its_code_and_source_lines_hold_their_instructions(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded)
    view = recorded.functions[0]
    section = page.locator("#t-hot-functions")
    section.locator(f"a[href='#f-{view.start:x}']").first.click()
    details = page.locator(f"#f-{view.start:x}")
    playwright.expect(details).to_have_attribute("open", "")
    source = details.locator("table.source")
    row = source.locator("tr", has_text="interp.c:115").first
    row.get_by_role("button").click()
    instructions = details.locator("tr.all > td").first.inner_text()
    assert "interp.c:115" in instructions
    assert "0x" in instructions
    graph, code = details.locator(".drawing"), details.locator(".code").last
    seen = sum(block.count > 0 for block in view.graph.blocks)
    assert graph.locator(".node").count() == min(seen, 120)
    assert graph.locator(".edge").count() > 0
    graph.locator(".node").first.focus()
    page.keyboard.press("Enter")
    playwright.expect(code.locator("tr.target")).to_have_count(1)
    assert page.evaluate("location.hash").startswith("#i-")


def test_a_chain_of_blocks_is_shown_in_the_control_flow(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    page.locator("nav a[href='#t-hyperblocks']").click()
    section = page.locator("#t-hyperblocks")
    section.get_by_role("button", name="All about this row").first.click()
    blocks = section.locator("ol.chain li").count()
    assert blocks > 1
    section.get_by_role("button", name="Show in the control flow").click()
    playwright.expect(page.locator(".drawing .in-chain")).to_have_count(blocks)


def test_a_path_across_calls_is_shown_in_each_control_flow_with_its_instructions(
    browser: Browser,
) -> None:
    only = ("hyperblocks", "function")
    page = browser.open(
        make_report(ReportOptions((RECORDING,), PIE, libraries=False, only=only, views=5))
    )
    page.locator("nav a[href='#t-hyperblocks-across-calls']").click()
    section = page.locator("#t-hyperblocks-across-calls")
    section.get_by_role("button", name="All about this row").first.click()
    chain = section.locator("ol.chain").first
    assert chain.locator("li strong").count() > 1
    chain.locator("summary").first.click()
    assert chain.locator("pre").first.inner_text()
    pictures = section.get_by_role("button", name="Show in the control flow of")
    for i in range(pictures.count()):
        pictures.nth(i).click()
    assert pictures.count() > 1
    drawings = page.locator(".drawing:has(.in-chain)")
    playwright.expect(drawings).to_have_count(pictures.count())


def test_search_finds_functions_rows_instructions_and_source(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded)
    page.keyboard.press("/")
    page.keyboard.type("interp.c:115")
    found = page.locator("#found li").all_inner_texts()
    assert any(text.startswith("Hot branches: ") for text in found)
    assert any("source interp.c:115" in text for text in found)
    page.locator("#found a", has_text="Hot branches").click()
    assert page.locator("#t-hot-branches input").input_value() == "interp.c:115"
    page.locator("#search").fill("no such thing")
    assert page.locator("#found").inner_text() == "Nothing found"
    page.locator("#search").fill("")
    assert not page.locator("#found").is_visible()


def test_charts_are_drawn_when_they_are_seen(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    page.locator("nav a[href='#charts']").click()
    page.locator(".plot canvas").first.wait_for()
    assert page.locator(".plot").count() == len(recorded.timings) > 0
    assert page.locator(".plot").first.bounding_box()["height"] >= 300  # type: ignore[index]
    page.locator("#log-axis").check()
    assert page.locator(".plot canvas").count() > 0


def test_the_flame_graph_zooms_searches_and_turns(browser: Browser) -> None:
    page = browser.open(flame_report())
    page.locator("nav a[href='#flame']").click()
    frames = page.locator("g.frame")
    # all, main, dispatch with g and h below it, and g
    playwright.expect(frames).to_have_count(6)
    page.locator("#flame-search").fill("dispatch")
    assert page.locator("#flame-found").inner_text() == "66.7% of samples"
    frame = page.locator("g.frame[aria-label^=dispatch]")
    narrow = frame.bounding_box()["width"]  # type: ignore[index]
    frame.focus()
    page.keyboard.press("Enter")
    assert frame.bounding_box()["width"] > narrow * 1.3  # type: ignore[index]
    page.locator("#flame-invert").check()
    labels = frames.evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert {"[all]: 9 (100.0%)", "g: 6 (66.7%)", "h: 3 (33.3%)"} <= set(labels)


def test_calls_make_a_flame_graph_without_call_stacks(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    page.locator("nav a[href='#flame']").click()
    frames = page.locator("g.frame")
    frames.first.wait_for()
    labels = frames.evaluate_all("all => all.map(each => each.textContent)")
    assert any(label.startswith("run: ") for label in labels)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1920])
def test_it_fits_the_screen_and_bars_nobody(
    browser: Browser, recorded: Report, scheme: str, width: int
) -> None:
    """axe-core finds nothing serious, with everything open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 900}
    page = browser.open(recorded, color_scheme=scheme, viewport=size, bypass_csp=True)
    page.evaluate("document.querySelectorAll('main > section details').forEach(open)")
    page.evaluate(
        "document.querySelectorAll('.more button').forEach((b, i) => i % 40 || b.click())"
    )
    page.locator("#search").fill("run")
    wide = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(each => !each.closest('.scroll, svg') &&"
        " each.getBoundingClientRect().right > innerWidth).map(each => each.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = axe.Axe().run(page).response["violations"]
    grave = [
        (each["id"], node["html"][:120], node.get("failureSummary", "")[:200])
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:2]
    ]
    assert grave == []


def test_where_each_place_has_a_file_the_numbers_still_have_room(browser: Browser) -> None:
    """A table of branches of a process: six columns of names."""
    ends = [f"{end}_{part}" for end in ("from", "to") for part in ("function", "file", "line")]
    columns = (
        Column("from_address", "from address", Unit.ADDRESS),
        Column("share", "share", Unit.SHARE),
        Column("count", "count", Unit.COUNT),
        *(Column(name, name.replace("_", " "), Unit.TEXT) for name in ends),
    )
    row = (0x51D3E8, 0.5, 12_345, *(f"libthing.so.6+{name}_0x12345678_long" for name in ends))
    table = Table("hot-branches", "Hot branches", columns, (row,) * 20)
    page = browser.open(
        Report("t", "a.out", None, ("p",), (), (), (table,)),
        viewport={"width": 1280, "height": 900},
    )
    shown = page.locator("#t-hot-branches th")
    assert {"share", "count", *ends} <= set(
        shown.evaluate_all("all => all.map(each => each.dataset.column)")
    )
    place = page.locator("#t-hot-branches .body").bounding_box()
    drawn = page.locator("#t-hot-branches table").bounding_box()
    assert place is not None
    assert drawn is not None
    assert drawn["x"] + drawn["width"] <= place["x"] + place["width"] + 1


def test_paper_shows_what_is_closed(browser: Browser) -> None:
    page = browser.open(toy_report())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav").is_visible()
    assert page.locator("#t-call-edges table").is_visible()


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
    page = browser.open(hostile_report())
    page.evaluate("document.querySelectorAll('main > section details').forEach(open)")
    page.evaluate("document.querySelectorAll('.more button').forEach((each) => each.click())")
    for header in page.locator("#t-hot-branches thead button").all():
        header.click()
    for name in page.locator("td a, figcaption a, .node").all()[:20]:
        name.dispatch_event("mouseover")
    page.locator("#t-hot-branches input[type=search]").fill("<img src=x onerror")
    page.locator("#search").fill("<img src=x onerror")
    page.locator("#flame-search").fill("<img src=x (")
    page.locator("g.frame").nth(1).dispatch_event("click")
    assert page.locator("#harm").count() == 0
    assert page.evaluate("document.body.dataset.harm") is None
    assert page.locator("img").count() == 0
    assert page.locator("g.frame").count() > 1


def test_the_page_of_a_large_program_is_light(
    browser: Browser, corpus: Callable[[str], Path]
) -> None:
    profile, binary = corpus("sqlite/sq.perf.data.zst"), corpus("sqlite/sq.zst")
    page = browser.open(make_report(ReportOptions((profile,), binary, top=200, views=12)))
    assert page.locator("#t-hot-branches tbody tr").count() == 15
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 1000


def test_pictures_of_the_documentation_can_be_made_again(
    tool: Callable[[str], str], run: Callable[..., object], tmp_path: Path
) -> None:
    tool("chromium")
    run(sys.executable, TESTBINS.parent / "docs" / "make_pictures.py", tmp_path)
    assert ">valid&#160;fall-throughs" in (tmp_path / "convert.svg").read_text()
    assert (tmp_path / "accuracy.svg").read_text().count("<polyline") == 3
    assert (tmp_path / "depths.svg").read_text().count("<polyline") == 2
    picture = (tmp_path / "report.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1280, 900)
