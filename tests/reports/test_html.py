from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from builders.pages import HOSTILE, flame_report, hostile_report, toy_report
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.distributions import Mode
from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.cli import main
from lbr2pgo.reports import html, page
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.model import CallNode, FunctionGraph, GraphBlock, GraphEdge, Report, Timing
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

    def data(self) -> dict[str, object]:
        place = [a.get("id") for tag, a in self.elements if tag == "script"].index("data")
        texts = [text for tag, text in self.texts if tag == "script"]
        found: dict[str, object] = json.loads(texts[place])
        return found


@pytest.fixture(scope="module")
def recorded() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, top=100, views=3))


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
    links = [a["href"] or "" for tag, a in document.elements if tag == "a"]
    assert {link for link in links if link.removeprefix("#") not in ids} == set()


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
    data = Document(html.render(hostile_report())).data()
    assert data["flame"]["names"] == ["[all]", printable(HOSTILE[1])] + [  # type: ignore[index]
        printable(name) for name in HOSTILE if name != HOSTILE[1]
    ]


def test_only_the_scripts_of_the_page_may_run(report: Report) -> None:
    document = Document(html.render(report))
    policy = next(
        a["content"] or "" for _, a in document.elements if a.get("http-equiv") is not None
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    scripts = [a for tag, a in document.elements if tag == "script" and "type" not in a]
    assert len(re.findall(r"'sha256-", policy)) == len(scripts)


def test_d3_is_only_in_pages_with_a_flame_graph() -> None:
    assert "flamegraph" in html.render(flame_report())
    assert len(html.render(toy_report())) + 270_000 < len(html.render(flame_report()))


def test_every_table_and_function_is_there(recorded: Report) -> None:
    ids = Document(html.render(recorded)).ids()
    for table in recorded.tables:
        assert (f"t-{table.name}" in ids) == (table.name != "latency-rates")
    for view in recorded.functions:
        assert f"f-{view.start:x}" in ids


def test_a_branch_leads_to_its_code_and_back(recorded: Report) -> None:
    document = Document(html.render(recorded))
    hot = recorded.table("hot-branches")
    assert hot is not None
    address = hot.column("from_address")[0]
    links = [a for tag, a in document.elements if tag == "a"]
    assert f"#i-{address:x}" in [a["href"] for a in links]
    assert ("#t-hot-branches", f"{address:#x}") in [
        (a["href"], a.get("data-search")) for a in links
    ]


def test_numbers_sort_by_their_value_and_addresses_stand_aside() -> None:
    share, address = (
        Column("s", "share", Unit.SHARE),
        Column("a", "address", Unit.ADDRESS),
    )
    links = page.Links(toy_report())
    assert links.cell(share, 0.123456).order == "0.123456"
    assert links.cell(share, None) == page.Cell("", "", None)
    assert links.cell(address, 0x99).order is None


def test_trees_are_indented() -> None:
    columns = (
        Column("depth", "depth", Unit.COUNT),
        Column("f", "function", Unit.FUNCTION),
    )
    table = Table("x", "X", columns, ((0, "hot"), (2, "outer")))
    text = html.render(replace(toy_report(), tables=(table,)))
    assert '<td style="padding-left: 3em">outer' in text
    assert "<td>hot" in text


def test_the_same_report_gives_the_same_page(recorded: Report) -> None:
    assert html.render(recorded) == html.render(recorded)


def test_an_empty_report_says_so() -> None:
    text = html.render(Report("Nothing", "", None, (), (), (), ()))
    assert text.count("Nothing to show") == 3


def test_a_chart_shows_rates_without_the_slowest_part() -> None:
    modes = (Mode(80, 0.503), Mode(290, 0.497))
    timing = Timing("f", None, 1, 2, (80, 290, 9000), (500, 495, 5), 7, 2, modes)
    toy = toy_report()
    chart = page.charts(replace(toy, timings=(timing,)), page.Links(toy))[0]
    assert chart.series == {"cycles": (80, 290), "rate": [0.5, 0.495]}
    assert chart.title.link is None
    assert chart.facts == (
        "until 0x2; 1,000 times; modes at 80 (50%), 290 (50%) cycles; 0.5% took longer than 290; "
        "7 without cycles; 2 saturated"
    )


def test_code_that_never_ran_is_one_row() -> None:
    columns = (Column("count", "", Unit.COUNT), Column("address", "", Unit.ADDRESS))
    counts = [5, 0, 0, *[3], *[0] * 9, 1]
    code = Table("function", "", columns, tuple((c, 0x10 + i) for i, c in enumerate(counts)))
    assert [len(part) for part in page.code_parts(code)] == [1, 1, 1, 1, 9, 1]


def test_a_large_graph_is_drawn_as_its_hottest_part() -> None:
    toy = toy_report()
    blocks = tuple(GraphBlock(i, i + 1, i, i / 1000, f"{i:#x}") for i in range(1000))
    edges = tuple(GraphEdge(i, i + 1, "taken", 1, None) for i in range(999))
    view = replace(toy.functions[0], graph=FunctionGraph(blocks, edges))
    drawn = page.function(toy, view, page.Links(toy))
    nodes = drawn.graph["nodes"]
    assert [node["id"] for node in nodes] == [str(i) for i in range(880, 1000)]  # type: ignore[attr-defined]
    assert len(drawn.graph["edges"]) == 119  # type: ignore[arg-type]
    assert drawn.left_out == "120 of 1,000 blocks; 1 were not seen to run; 879 ran less often"


def test_a_call_tree_of_any_depth_is_drawn_to_some_depth() -> None:
    tree = CallNode("leaf", 1, 1, ())
    for i in range(5000):
        tree = CallNode(f"f{i}", 1, 0, (tree,))
    frames = page.flame(tree)["frames"]
    assert [frame[0] for frame in frames] == list(range(201))  # type: ignore[index]


def test_long_names_are_cut() -> None:
    assert len(page.text_of(Column("f", "f", Unit.FUNCTION), "x" * 10**6)) == 401


def test_libraries_are_the_ones_of_the_list() -> None:
    listed = re.findall(
        r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", (ASSETS / "README.md").read_text(), re.M
    )
    assert len(listed) > 8
    for name, digest in listed:
        content = (ASSETS / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert name.endswith("LICENSE") or not re.search(
            rb"</(script|style)|\r|sourceMapp", content
        )
    ours = {"README.md", "page.css", "page.html.j2", "page.js", "refresh.py"}
    there = {path.name for path in ASSETS.iterdir() if path.is_file()}
    assert there == ours | {name for name, _ in listed}


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
    assert 1_000_000 < out.stat().st_size < 5_000_000
