from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from builders.pages import HOSTILE, flame_report, hostile_report, toy_report
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.distributions import Mode
from lbr2pgo.analyses.table import SIMULATED, Column, Table, Unit
from lbr2pgo.cli import main
from lbr2pgo.reports import html, page
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.model import CallNode, Report, Timing
from lbr2pgo.reports.notebook import NotebookReport
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.printable import printable

ASSETS = Path(html.__file__).parent / "assets"
VOID = {"meta", "link", "br", "img", "input", "rect"}
OPTIONAL = {"td", "tr", "th", "li", "dt", "dd", "p"}


class Document(HTMLParser):
    """What a page holds: elements in order, and texts by the element that they stand in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.errors: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not [tag for tag in self._open if tag not in OPTIONAL], self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open[-1] != tag and self._open[-1] in OPTIONAL:
            self._open.pop()
        if not self._open or self._open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]

    def data(self, name: str = "data") -> dict[str, object]:
        place = [a.get("id") for tag, a in self.elements if tag == "script"].index(name)
        texts = [text for tag, text in self.texts if tag == "script"]
        found: dict[str, object] = json.loads(zlib.decompress(base64.b64decode(texts[place])))
        return found


@pytest.fixture(scope="module")
def recorded() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, libraries=False, top=100, views=3))


@pytest.fixture(scope="module", params=["recorded", "toy", "hostile", "flame"])
def report(request: pytest.FixtureRequest) -> Report:
    made = {"toy": toy_report, "hostile": hostile_report, "flame": flame_report}
    if request.param in made:
        return made[request.param]()
    found: Report = request.getfixturevalue(request.param)
    return found


def test_every_element_is_closed_and_every_link_leads_somewhere(report: Report) -> None:
    document = Document(html.render(report))
    assert document.errors == []
    ids = document.ids()
    assert len(set(ids)) == len(ids)
    starts = {f"f-{pieces[0][0]:x}" for pieces in (report.ran.pieces if report.ran else ())}
    places = {*ids, *page.TABS, *starts, *(f"t-{table.name}" for table in report.tables)}
    links = {(a["href"] or "").removeprefix("#") for tag, a in document.elements if tag == "a"}
    assert {link for link in links if link.partition("/")[0] not in places} == set()


def test_nothing_is_loaded(report: Report) -> None:
    document = Document(html.render(report))
    for tag, attributes in document.elements:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"] == "data:,"
        assert tag not in ("iframe", "object", "embed", "base", "img")
    styles = "".join(text for tag, text in document.texts if tag == "style")
    assert "url(" not in styles
    assert "@import" not in styles


def test_no_element_or_attribute_comes_from_a_name() -> None:
    text = html.render(hostile_report())
    document = Document(text)
    assert "harm" not in document.ids()
    for _, attributes in document.elements:
        assert not [name for name in attributes if name.startswith("on")]
    assert "49" not in dict(document.texts)
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_names_are_shown_whole() -> None:
    document = Document(html.render(hostile_report()))
    words = [text for tag, text in document.texts if tag not in ("script", "style")]
    for name in HOSTILE:
        assert printable(name) in words


def test_names_in_the_data_survive() -> None:
    texts = Document(html.render(hostile_report())).data()["texts"]
    assert {printable(name) for name in HOSTILE} <= set(texts)  # type: ignore[call-overload]


def test_only_the_scripts_of_the_page_may_run(report: Report) -> None:
    document = Document(html.render(report))
    policy = next(
        a["content"] or "" for _, a in document.elements if a.get("http-equiv") is not None
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    scripts = [a for tag, a in document.elements if tag == "script" and "type" not in a]
    assert len(re.findall(r"'sha256-", policy)) == len(scripts)


def test_a_page_that_is_served_may_ask_where_it_comes_from() -> None:
    assert "connect-src" not in html.render(toy_report())
    assert "connect-src &#39;self&#39;" in html.render(toy_report(), asks=True)


def test_every_table_and_function_is_there(recorded: Report) -> None:
    document = Document(html.render(recorded))
    data = document.data()
    names = {table["name"] for table in data["tables"]}  # type: ignore[attr-defined]
    for table in recorded.tables:
        is_shown = table.name not in ("latency-rates", "hot-functions") and bool(table.rows)
        assert (table.name in names) == is_shown
    functions: dict[str, list[list[list[object]]]] = data["functions"]  # type: ignore[assignment]
    hot = recorded.table("hot-functions")
    assert hot is not None
    assert len(functions["rows"]) == hot.found > len(recorded.functions) == 3
    starts = [pieces[0][0] for pieces in functions["pieces"]]
    assert data["inside"] == starts[:3] == [f"{view.placed_start:x}" for view in recorded.functions]
    for view in recorded.functions:
        assert document.data(f"f-{view.placed_start:x}")["start"] == f"{view.placed_start:x}"


def test_sentences_lead_to_what_they_are_about(recorded: Report) -> None:
    document = Document(html.render(recorded))
    hottest, worst = recorded.functions[0].start, recorded.table("mispredictions")
    assert worst is not None
    links = [a["href"] for tag, a in document.elements if tag == "a"]
    place = f"#f-{hottest:x}"
    wanted = {"#quality", f"{place}/{hottest:#x}", f"{place}/{worst.rows[0][-1]:#x}"}
    assert wanted < {*links}


def test_the_page_begins_with_the_answers(recorded: Report) -> None:
    texts = [text for tag, text in Document(html.render(recorded)).texts if tag == "a"]
    first = texts.index(recorded.summary[0])
    assert tuple(texts[first : first + len(recorded.summary)]) == recorded.summary


def test_rows_are_data_in_the_units_of_their_columns(recorded: Report) -> None:
    data = Document(html.render(recorded)).data()
    texts: list[str] = data["texts"]  # type: ignore[assignment]
    tables = {table["name"]: table for table in data["tables"]}  # type: ignore[attr-defined]
    hot = recorded.table("hot-branches")
    assert hot is not None
    first, row = next(hot.records()), tables["hot-branches"]["rows"][0]
    units = [column["unit"] for column in tables["hot-branches"]["columns"]]
    assert row[0] == pytest.approx(first["share"], rel=1e-5)
    assert row[1] == first["count"]
    assert texts[row[units.index("function")]] == first["from_function"]
    assert texts[row[units.index("address")]] == f"{first['from_address']:#x}"


def test_what_a_recording_cannot_tell_is_said_in_one_place() -> None:
    note = "no cycles here"
    table = Table("latency", "Cycles", (Column("a", "a", Unit.COUNT),), (), (note,))
    document = Document(html.render(replace(toy_report(), tables=(table,))))
    assert not document.data()["tables"]
    assert ("dd", note) in document.texts


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    columns = (Column("a", "a", Unit.COUNT), Column("b", "b", Unit.LOCATION))
    shown = page.visible(replace(toy_report(), tables=(Table("x", "X", columns, ((1, None),)),)))
    assert [column.name for column in shown[0].columns] == ["a"]


def test_that_a_processor_was_simulated_is_said_once() -> None:
    columns = (Column("a", "a", Unit.COUNT), Column("b", "b", Unit.COUNT, of_processor=True))
    tables = [
        Table(name, "X", columns, ((1, 2),)).as_simulated(in_title=name == "x") for name in "xy"
    ]
    report = replace(toy_report(), tables=tuple(tables), ran=None, functions=(), notes=())
    document = Document(html.render(report))
    assert sum(SIMULATED in text for _, text in document.texts) == 1
    data = document.data()
    assert not [text for text in data["texts"] if "simulated" in text]  # type: ignore[attr-defined]
    assert not [table for table in data["tables"] if "simulated" in str(table)]  # type: ignore[attr-defined]


def test_the_same_report_gives_the_same_page(recorded: Report) -> None:
    assert html.render(recorded) == html.render(recorded)


def test_an_empty_report_says_so() -> None:
    text = html.render(Report("Nothing", "", None, (), (), (), ()))
    assert text.count("Nothing to show") == 1


def test_a_chart_shows_rates_without_the_slowest_part() -> None:
    modes = (Mode(80, 0.503), Mode(290, 0.497, 0.25))
    timing = Timing("f", None, 1, 2, (80, 290, 9000), (500, 495, 5), 7, 2, modes)
    texts = page.PageTexts()
    chart = page.charts(replace(toy_report(), timings=(timing,)), texts)[0]
    assert (chart["cycles"], chart["rate"]) == ([80, 290], [0.5, 0.495])
    assert chart["modes"] == [80, 290]
    assert texts.all()[chart["facts"]] == (  # type: ignore[call-overload]
        "until 0x2; 1,000 times; modes at 80 (50%), 290 (50%, 25% mispredicted) cycles; "
        "0.5% took longer than 290; 7 without cycles; 2 saturated"
    )


@pytest.mark.parametrize(
    ("modes", "told"),
    [
        ((), "before: 4 times (blue)"),
        ((Mode(80, 1.0),), "4 times, modes at 80 (100%) cycles (blue)"),
    ],
)
def test_a_chart_names_no_modes_of_few_times(modes: tuple[Mode, ...], told: str) -> None:
    old = Timing("f", None, 1, 2, (80, 290), (3, 1), 0, 0, modes)
    timing = replace(old, count=(2, 2), modes=(), before=old)
    texts = page.PageTexts()
    chart = page.charts(replace(toy_report(), timings=(timing,)), texts)[0]
    facts = texts.all()[chart["facts"]]  # type: ignore[call-overload]
    assert facts.startswith("until 0x2; 4 times; before: ")
    assert facts.endswith(told)


def test_charts_name_the_modes_of_the_table(recorded: Report) -> None:
    table = recorded.table("latency")
    assert table is not None
    modes = {(row["address"], row["end_address"]): row["modes"] for row in table.records()}
    assert len(recorded.timings) > len(modes)
    for timing in recorded.timings:
        if not timing.is_loop:
            words = (f"{mode.at} {100 * mode.share:.0f} %" for mode in timing.modes)
            told = modes[timing.start, timing.end]
            assert not timing.modes or told == " · ".join(words)


def test_a_call_tree_of_any_depth_is_drawn_to_some_depth() -> None:
    tree = CallNode("leaf", 1, 1, ())
    for i in range(5000):
        tree = CallNode(f"f{i}", 1, 0, (tree,))
    frames = page.flame(tree, None, page.PageTexts())
    assert [frame[0] for frame in frames] == list(range(201))


def test_a_call_tree_has_what_each_frame_was_before_as_a_part_of_now() -> None:
    leaves = [CallNode(name, 2, 2, ()) for name in ("a.llvm.1", "b")]
    now, before = CallNode("[all]", 4, 0, tuple(leaves)), CallNode("[all]", 2, 0, (leaves[0],))
    before = replace(before, callees=(CallNode("a.llvm.2", 1, 1, ()),))
    assert page.flame(now, before, page.PageTexts()) == [
        [0, 0, 4, 0, 4],
        [1, 1, 2, 2, 2],
        [1, 2, 2, 2, 0],
    ]


def test_libraries_are_the_ones_of_the_list() -> None:
    listed = re.findall(
        r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", (ASSETS / "README.md").read_text(), re.M
    )
    assert len(listed) == 13
    for name, digest in listed:
        content = (ASSETS / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert name.endswith("LICENSE") or not re.search(
            rb"</(script|style)|\r|sourceMapp", content
        )
    ours = {"README.md", "page.css", "page.html.j2", "refresh.py", *html.SCRIPTS}
    there = {path.name for path in ASSETS.iterdir() if path.is_file()}
    assert there == ours | {name for name, _ in listed}


def test_a_notebook_shows_a_report_in_a_frame() -> None:
    shown = NotebookReport.of(hostile_report())._repr_html_()
    ((tag, attributes),) = Document(shown).elements
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    inner = Document(attributes["srcdoc"] or "")
    assert inner.errors == []
    assert "data" in inner.ids()
    assert "harm" not in inner.ids()


def test_the_page_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    toy = toy_report()
    html.write(toy, tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text() == html.render(toy)
    with pytest.raises(OutputError):
        html.write(toy, tmp_path / "nowhere" / "out.html")


def test_the_command_for_a_large_program(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    out = tmp_path / "sq.html"
    words = ["report", corpus("sqlite/sq.perf.data.zst"), "--binary", corpus("sqlite/sq.zst")]
    assert main([*map(str, words), "--html", str(out)]) == 0
    assert 800_000 < out.stat().st_size < 1_500_000
    held = Document(out.read_text()).data()["inside"]
    assert len(held) == 50  # type: ignore[arg-type]
    assert main([*map(str, words), "--functions", "2", "--html", str(out)]) == 0
    assert Document(out.read_text()).data()["inside"] == held[:2]  # type: ignore[index]
