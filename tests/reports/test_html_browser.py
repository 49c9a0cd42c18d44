"""The page in a real browser: Debian's chromium, without a window and without a network."""

from __future__ import annotations

import base64
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from builders.pages import flame_report, hostile_report, toy_report
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.analyses.start import StartPicture
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.cli.view import serving
from lbr2pgo.reports import html
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.compare import make_comparison
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.page_code import function_data

if TYPE_CHECKING:
    import playwright.sync_api as playwright

OPTIONS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
NARROW, USUAL, WIDE = (
    {"width": width, "height": height} for width, height in ((400, 800), (1280, 800), (1920, 1000))
)


SAID_ONCE = " (simulated)"


class Browser:
    """Opens reports; what the pages complain about or ask for is kept."""

    def __init__(self, chromium: playwright.Browser, directory: Path) -> None:
        self.chromium, self.directory = chromium, directory
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.opened: list[str] = []

    def open(self, report: Report, place: str = "", **context: object) -> playwright.Page:
        path = self.directory / "report.html"
        html.write(report, path)
        return self.visit(f"{path.as_uri()}{place}", **context)

    def visit(self, url: str, **context: object) -> playwright.Page:
        page = self.chromium.new_context(**{"viewport": USUAL, **context}).new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        self.opened.append(url.partition("#")[0])
        page.locator("body[data-ready]").wait_for()
        return page


@pytest.fixture(scope="module")
def chromium(tool: Callable[[str], str]) -> Iterator[playwright.Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
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


RECORDED = ReportOptions(
    (RECORDING,), PIE, libraries=False, top=100, views=3, source=True,
    source_dirs=((".", str(TESTBINS)),),
)  # fmt: skip


@pytest.fixture(scope="module")
def recorded() -> Report:
    return make_report(RECORDED)


def expect(found: playwright.Locator) -> playwright.LocatorAssertions:
    """Playwright's own, which takes long to load."""
    from playwright.sync_api import expect

    return expect(found)


def place(page: playwright.Page) -> str:
    return unquote(str(page.evaluate("location.hash")))


def selected(page: playwright.Page) -> str:
    return str(page.locator(".code [aria-selected=true]").inner_text())


def told(page: playwright.Page) -> str:
    return str(page.locator("#about-body").inner_text())


def cells(page: playwright.Page, column: int) -> list[str]:
    """Texts of a column of the rows that are shown."""
    found = page.locator("#view section:not([hidden]) .tabulator-row")
    return [
        row.locator(".tabulator-cell").nth(column).inner_text().strip() for row in found.all()[:10]
    ]


def test_the_overview_leads_to_the_hottest_line_in_one_click(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded)
    links = page.locator(".summary a")
    assert links.count() == len(recorded.summary)
    links.filter(has_text="The costliest branch to predict").click()
    worst = recorded.table("mispredictions")
    assert worst is not None
    address = f"{worst.column('address')[0]:#x}"
    expect(page.locator(".code [aria-selected=true]")).to_contain_text(address)
    assert place(page) == f"#f-{recorded.functions[0].start:x}/{address}"
    about = told(page)
    assert "mispredicted" in about
    assert "Why it matters" in about
    assert "% of all mispredictions" in about


def test_a_function_opens_on_its_hottest_line_with_all_that_is_known_of_it(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded, f"#f-{recorded.functions[0].start:x}")
    assert "load: *top++ = variables[*pc++]; NEXT;" in selected(page)
    assert place(page).endswith("/interp.c:116")
    about = told(page)
    assert "interp.c:116" in about
    assert "922 times" in about  # the chart
    page.locator("#about-body canvas").first.wait_for()
    page.get_by_role("button", name="next hot").click()
    assert not place(page).endswith("/interp.c:116")
    page.get_by_role("button", name="hotter").click()
    assert place(page).endswith("/interp.c:116")


def test_the_place_is_in_the_address_bar_and_leads_back(browser: Browser, recorded: Report) -> None:
    view = recorded.functions[0]
    page = browser.open(recorded, f"#f-{view.placed_start:x}/interp.c%3A119")
    assert "subtract" in selected(page)
    page.locator("#tabs a", has_text="Why").click()
    assert page.locator("#view h2:visible").inner_text() == "Mispredictions altogether"
    page.go_back()
    assert "subtract" in selected(page)
    assert page.locator("#tabs a[aria-current]").inner_text() == "Where"


def test_rows_are_made_where_they_are_seen(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded, f"#f-{recorded.functions[0].start:x}")
    page.keyboard.press("e")
    page.keyboard.press("e")
    page.locator(".code .row").first.wait_for()  # they are made with the next frame
    made, all_ = page.locator(".code .row").count(), page.evaluate("state.code.rows.length")
    assert 20 < made < 70 < all_
    page.locator(".code").focus()
    page.keyboard.press("End")
    assert str(all_ - 1) == page.locator(".code [aria-selected=true]").get_attribute("data-row")


def test_the_keyboard_alone_does_all_of_it(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("f")
    page.keyboard.type("wal")
    expect(page.locator("#functions .entry:visible")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#view section:not([hidden]) h2").first).to_have_text("walk")
    page.locator("#view .code [aria-selected=true]").wait_for()
    hottest = place(page)
    page.keyboard.press("n")
    assert place(page) != hottest
    page.keyboard.press("p")
    assert place(page) == hottest
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "/0x" in place(page)
    page.keyboard.press("ArrowLeft")
    assert place(page) == hottest
    page.keyboard.press("a")
    assert page.get_by_role("button", name="Assembly").get_attribute("aria-pressed") == "true"
    page.keyboard.press("g")
    page.locator(".drawing .node").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".code [aria-selected=true]")).to_contain_text("0x")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


def test_branches_tell_at_the_branch_and_arrows_join_jumps(browser: Browser) -> None:
    report = toy_report()
    page = browser.open(report, "#f-1000/0x1016")
    chips = page.locator(".code [aria-selected=true] .chip")
    assert chips.first.inner_text().startswith("taken ")
    edges = report.functions[0].graph.edges
    jumps = sum(edge.count > 0 and edge.kind != "fallthrough" for edge in edges)
    assert page.locator(".arrows path").count() == jumps > 1
    assert page.locator(".arrows path.at").count() == 1
    facts = function_data(report.functions[0])["branches"]
    taken, past, low, high = next(each for each in facts if each[0] == 0x16)[1]  # type: ignore[attr-defined]
    about = told(page)
    assert f"{taken:,} of {taken + past:,}" in about
    assert f"({100 * low:.1f}% to {100 * high:.1f}%)" in about
    assert "in a loop" in about
    page.locator(".code").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".code [aria-selected=true]")).to_contain_text("0x1005")


def test_tables_sort_by_value_and_by_keyboard_and_lead_to_code(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded, "#t-hot-branches")
    table = recorded.table("hot-branches")
    assert table is not None
    page.locator("#view .tabulator-tableholder").focus()
    page.keyboard.press("ArrowDown")
    about = told(page)
    for column in table.columns:
        assert column.title in about
    page.keyboard.press("Enter")
    expect(page.locator(".code [aria-selected=true]")).to_contain_text("0x")
    page.go_back()
    counts = sorted(table.column("count"))[:10]  # type: ignore[type-var]
    header = page.locator("#view .tabulator-col:visible button", has_text="count")
    header.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert cells(page, 1) == [f"{count:,}" for count in counts]


@pytest.mark.parametrize("name", ["mispredictions", "latency", "hyperblocks", "hot-branches"])
def test_a_table_shows_what_it_is_about_and_tells_of_its_first_row(
    browser: Browser, recorded: Report, name: str
) -> None:
    page, table = browser.open(recorded, f"#t-{name}"), recorded.table(name)
    assert table is not None
    functions = [c.name for c in table.columns if c.kind is Unit.FUNCTION]
    about = page.locator("#about-body")
    expect(about).to_contain_text(str(table.column(functions[0])[0]))
    seen = page.locator("#view section:not([hidden]) .tabulator-col:visible").all_inner_texts()
    wanted = [column.title for column in table.columns if column.priority is FIGURE]
    assert {title.strip() for title in seen} >= {title.removesuffix(SAID_ONCE) for title in wanted}
    page.evaluate("location.hash = 'quality'")
    expect(about).to_contain_text("Select a function")


def test_tables_filter_and_say_how_much_there_is(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded, "#t-hot-branches/interp.c%3A115")
    table = recorded.table("hot-branches")
    assert table is not None
    hits = [row for row in table.rows if "interp.c:115" in row]
    count = page.locator("#view section:not([hidden]) .tools .faint")
    expect(count).to_have_text(f"{len(hits)} rows")
    page.locator("#view section:not([hidden]) input[type=search]").fill("no such name")
    expect(page.locator("#view section:not([hidden])")).to_contain_text("Nothing found.")


def test_chains_of_blocks_are_code_and_marked_in_the_control_flow(browser: Browser) -> None:
    only = ("hyperblocks", "function")
    page = browser.open(
        make_report(ReportOptions((RECORDING,), PIE, libraries=False, only=only, views=5)),
        "#t-hyperblocks-across-calls",
    )
    page.locator("#view .tabulator-row").first.click()
    chain = page.locator("#about-body ol.chain li")
    expect(chain.locator("pre").first).to_contain_text("%")
    assert chain.count() > 1
    pictures = page.locator("#about-body a[href^='#g-']")
    assert pictures.count() > 1
    pictures.first.click()
    page.locator(".drawing .in-chain").first.wait_for()
    assert page.locator(".drawing .edge").count() > 0


def test_a_large_graph_is_drawn_as_its_hottest_part(browser: Browser) -> None:
    toy = toy_report()
    graph = toy.functions[0].graph
    many = tuple(replace(graph.blocks[0], count=i) for i in range(300))
    view = replace(toy.functions[0], graph=replace(graph, blocks=many, edges=(), loops=()))
    page = browser.open(replace(toy, functions=(view,)), f"#g-{view.placed_start:x}")
    assert page.locator(".drawing .node").count() == 120
    words = "120 of 300 blocks; 1 were not seen to run, 179 ran less often."
    assert page.get_by_text(words).is_visible()


def test_search_finds_functions_rows_instructions_and_source(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded)
    page.keyboard.press("/")
    page.keyboard.type("interp.c:115")
    items = page.locator("#found li")
    expect(items.filter(has_text="source interp.c:115")).to_have_count(1)
    items.filter(has_text="Hot branches: ").locator("a").click()
    # The first: the view before, which may still be there, has three.
    shown = page.locator("#view section:not([hidden]) input[type=search]").first
    expect(shown).to_have_value("interp.c:115")
    page.locator("#search").fill("jmp")
    items.filter(has_text="run: 0x").first.wait_for()
    page.locator("#search").fill("no such thing")
    expect(page.locator("#found")).to_have_text("Nothing found")
    page.keyboard.press("Escape")
    assert not page.locator("#found").is_visible()


def test_charts_are_drawn_when_they_are_seen(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded, "#charts")
    page.locator(".plot canvas").first.wait_for()
    assert page.locator(".plot").count() == len(recorded.timings) > page.locator("canvas").count()
    page.get_by_label("logarithmic axis").check()
    assert page.locator(".plot canvas").count() > 0


def test_the_time_line_stands_beside_the_phases(browser: Browser, recorded: Report) -> None:
    phases = recorded.table("phases")
    assert phases is not None
    assert recorded.time_line is not None
    page = browser.open(recorded, "#time-line")
    plot = page.locator(".plot")
    plot.locator("canvas").wait_for()
    assert plot.get_attribute("aria-label") == f"Samples over time, in {len(phases)} phases"
    assert sum(recorded.time_line.samples) == sum(map(int, phases.column("samples")))
    page.locator("section:not([hidden])").get_by_role("link", name="phases").click()
    assert page.locator("#tabs a[aria-current]").inner_text() == "Quality"
    page.get_by_text("leading functions").first.wait_for()


def test_a_start_is_drawn_and_its_key_is_text(browser: Browser, recorded: Report) -> None:
    lines = (("app .text", (1, 2, 9)), ("<b>lib</b> .plt", (0, 1, 1)))
    page = browser.open(replace(recorded, start=StartPicture((0.0, 1.5, 3.0), lines)), "#start")
    figure = page.locator("section:not([hidden]) figure")
    figure.locator("canvas").wait_for()
    label = figure.locator(".plot").get_attribute("aria-label")
    assert label == "Pages of code that ran, of 2 sections"
    assert " ".join(figure.inner_text().split()) == "■ app .text ■ <b>lib</b> .plt"
    assert page.locator("#tabs a[aria-current]").inner_text() == "Layout"


def test_the_flame_graph_finds_focuses_ignores_and_turns(browser: Browser) -> None:
    page = browser.open(flame_report(), "#flame")
    section = page.locator("#view section:not([hidden])")
    frames, said = section.locator("g.frame"), section.locator("p")
    # all, main, dispatch with g and h below it, and g
    expect(frames).to_have_count(6)
    section.get_by_label("Find").fill("dispatch")
    expect(said).to_have_text("66.7% in what “dispatch” matches")
    section.get_by_label("Find").fill("")
    section.get_by_label("Focus").fill("dispatch")
    expect(frames).to_have_count(5)
    section.get_by_label("Focus").fill("")
    section.get_by_label("Ignore").fill("dispatch")
    expect(frames).to_have_count(3)
    section.get_by_label("Ignore").fill("")
    section.get_by_label("inverted").check()
    labels = frames.evaluate_all("all => all.map(each => each.textContent)")
    assert any("g: 6" in label for label in labels)
    section.locator(".flame").focus()
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text("g: 66.7% of samples")
    page.keyboard.press("Enter")
    assert "share" in told(page)


def test_calls_are_a_flame_graph_and_a_tree_without_call_stacks(
    browser: Browser, recorded: Report
) -> None:
    page = browser.open(recorded, "#calls")
    assert cells(page, 0)[:2] == ["[all]", "run"]
    page.locator("#views a", has_text="Flame graph").click()
    frames = page.locator("#view section:not([hidden]) g.frame")
    expect(frames.filter(has_text="run").first).to_be_visible()


def test_a_comparison_has_what_changed_and_a_differential_flame_graph(browser: Browser) -> None:
    page = browser.open(make_comparison(RECORDED, [RECORDING]), "#changes")
    expect(page.locator("#tabs a[aria-current]")).to_have_text("Changes")
    section = page.locator("#view section:not([hidden])")
    assert section.locator("h2").inner_text() == "Differential flame graph"
    section.locator(".flame").focus()
    page.keyboard.press("ArrowDown")
    text = section.locator("p").inner_text()
    now, before = (part.split("%")[0] for part in text.partition(": ")[2].split("before "))
    assert now == before
    assert page.locator("#views a").count() > 5
    page.locator("#tabs a", has_text="Where").click()
    assert page.locator(".summary a").first.get_attribute("href") == "#t-changes-functions"


def test_a_function_that_is_not_in_the_page_says_how_to_have_it(
    browser: Browser, recorded: Report
) -> None:
    report = replace(recorded, functions=recorded.functions[:1])
    page = browser.open(report, f"#f-{recorded.functions[1].start:x}")
    section = page.locator("#view section:not([hidden])")
    expect(section).to_contain_text("--functions N")
    assert recorded.functions[1].name in told(page)


def test_a_served_page_asks_for_any_function(browser: Browser, recorded: Report) -> None:
    asked: list[int] = []

    def function(start: int) -> str | None:
        assert recorded.open_function is not None
        asked.append(start)
        view = recorded.open_function(start)
        return None if view is None else html.packed(function_data(view))

    start = recorded.functions[1].start
    page = html.render(replace(recorded, functions=recorded.functions[:1]), asks=True)
    with serving(page, 0, function) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            opened = browser.visit(f"{url}#f-{start:x}")
            opened.locator(".code [aria-selected=true]").wait_for()
        finally:
            server.shutdown()
            thread.join()
    assert asked == [start]
    browser.opened.append(f"{url}f-{start:x}")


VIEWS = {
    "overview": ("overview", USUAL, "light"),
    "code": ("f-START", USUAL, "light"),
    "branch": ("f-START/0x1f93", USUAL, "dark"),
    "narrow": ("f-START", NARROW, "light"),
    "graph": ("g-START", USUAL, "dark"),
    "mispredictions": ("t-mispredictions", USUAL, "light"),
    "charts": ("charts", WIDE, "light"),
    "quality": ("quality", USUAL, "light"),
}
"""Pictures in `views/`, half as large as the page, which people have looked at."""
UNLIKE = 0.02
"""Fonts and versions of the browser make for half of it; a pane that is empty for twice that."""
_UNLIKENESS = """async (pictures) => {
  const [now, golden] = await Promise.all(pictures.map(async (url) => {
    const image = await createImageBitmap(await (await fetch(url)).blob());
    const context = new OffscreenCanvas(160, 100).getContext("2d");
    context.drawImage(image, 0, 0, 160, 100);
    return context.getImageData(0, 0, 160, 100).data;
  }));
  return now.reduce((sum, value, i) => sum + Math.abs(value - golden[i]), 0) / 255 / now.length;
}"""


@pytest.mark.parametrize("name", VIEWS)
def test_it_looks_as_when_somebody_looked(
    browser: Browser, recorded: Report, tmp_path: Path, name: str
) -> None:
    where, size, scheme = VIEWS[name]
    place_ = where.replace("START", f"{recorded.functions[0].start:x}")
    context = {"viewport": size, "color_scheme": scheme, "device_scale_factor": 0.5}
    anywhere = replace(recorded, binary="interp.pie", profiles=("perf.data",))
    page = browser.open(anywhere, f"#{place_}", **context)
    page.wait_for_timeout(300)
    if where.startswith("t-"):
        page.locator("#view .tabulator-row").first.click()
    now, golden = tmp_path / f"{name}.png", Path(__file__).parent / "views" / f"{name}.png"
    page.screenshot(path=now)
    blank = browser.chromium.new_page()
    pictures = [base64.b64encode(path.read_bytes()).decode() for path in (now, golden)]
    urls = [f"data:image/png;base64,{picture}" for picture in pictures]
    unlike = blank.evaluate(_UNLIKENESS, urls)
    assert unlike < UNLIKE, f"look at {now}; if it is right, it belongs to {golden}"


EVERYWHERE = ("overview", "functions", "flame", "calls", "t-mispredictions", "quality")


@pytest.mark.parametrize(
    ("size", "scheme"), [(NARROW, "dark"), (USUAL, "light"), (WIDE, "dark")], ids=str
)
def test_it_fits_the_screen_and_bars_nobody(
    browser: Browser, recorded: Report, size: dict[str, int], scheme: str
) -> None:
    """axe-core finds nothing serious in any view."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = browser.open(recorded, color_scheme=scheme, viewport=size, bypass_csp=True)
    start = f"{recorded.functions[0].start:x}"
    grave = []
    for name in (*EVERYWHERE, f"f-{start}", f"g-{start}"):
        page.evaluate("name => { location.hash = name }", name)
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        grave += [
            (name, each["id"], node["html"][:150], node.get("failureSummary", "")[:200])
            for each in axe.Axe().run(page).response["violations"]
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
        *(
            Column(
                name, name.replace("_", " "), Unit.LOCATION if name.endswith("line") else Unit.TEXT
            )
            for name in ends
        ),
    )
    row = (0x51D3E8, 0.5, 12_345, *(f"libthing.so.6+{name}_0x12345678_long" for name in ends))
    table = Table("hot-branches", "Hot branches", columns, (row,) * 20)
    report = Report("t", "a.out", None, ("p",), (), (), (table,))
    page = browser.open(report, "#t-hot-branches")
    titles = page.locator("#view .tabulator-col:visible").all_inner_texts()
    assert {"share", "count", *(name.replace("_", " ") for name in ends)} <= {
        " ".join(title.split()) for title in titles
    }
    table_ = page.locator("#view .tabulator-table").bounding_box()
    holder = page.locator("#view .tabulator-tableholder").bounding_box()
    assert table_ is not None
    assert holder is not None
    assert table_["width"] <= holder["width"] + 1


def test_paper_shows_every_view_that_was_opened(browser: Browser, recorded: Report) -> None:
    page = browser.open(recorded, "#quality")
    page.emulate_media(media="print")
    assert not page.locator("#functions").is_visible()
    assert page.locator("#waterfall").is_visible()
    assert page.locator(".summary").is_visible()


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
    starts = [f"{view.placed_start:x}" for view in report.functions]
    names = page.evaluate("all.map((each) => each.name)")
    for name in [*names, *(f"f-{start}" for start in starts), *(f"g-{start}" for start in starts)]:
        page.evaluate("name => { location.hash = name }", name)
        page.wait_for_timeout(50)
        for row in page.locator("#view section:not([hidden]) .tabulator-row").all()[:2]:
            row.dispatch_event("click")
        for element in page.locator("td a, figcaption a, .node, g.frame").all()[:5]:
            element.dispatch_event("mouseover")
        for box in page.locator("#view section:not([hidden]) input[type=search]").all():
            box.fill("<img src=x onerror (")
    page.locator("#search").fill("<img src=x onerror")
    page.locator("#function-search").fill("<img src=x (")
    page.wait_for_timeout(200)
    assert page.locator("#harm").count() == 0
    assert page.evaluate("document.body.dataset.harm") is None
    assert page.locator("img").count() == 0


def test_the_page_of_a_large_program_is_light(
    browser: Browser, corpus: Callable[[str], Path]
) -> None:
    profile, binary = corpus("sqlite/sq.perf.data.zst"), corpus("sqlite/sq.zst")
    page = browser.open(make_report(ReportOptions((profile,), binary, top=200, views=12)))
    assert page.evaluate("functions.rows.length") == 252
    assert page.evaluate("document.querySelectorAll('*').length") < 2000
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 500


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
