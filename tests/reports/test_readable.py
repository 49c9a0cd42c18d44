"""C++ names: linkage names for scripts, demangled ones for people."""

from __future__ import annotations

import csv
import io
import json

import pytest
from builders.pages import flame_report, toy_report, unpacked
from builders.recordings import TESTBINS

from lbr2pgo.cli import main
from lbr2pgo.reports import data, html
from lbr2pgo.reports.model import CallNode, Report
from lbr2pgo.reports.readable import cpp_names, readable

LINKAGE = ("_ZN3app3runEv", "_ZN3app8dispatchEPFvvE", "_ZNK5shape4areaIiEEvv")
CPP = ("app::run()", "app::dispatch(void (*)())", "void shape::area<int>() const")


@pytest.fixture(scope="module", params=["stacks", "branches"])
def report(request: pytest.FixtureRequest) -> Report:
    return (flame_report if request.param == "stacks" else toy_report)((*LINKAGE, "h"))


def test_nothing_that_people_read_holds_a_linkage_name(report: Report) -> None:
    page = unpacked(html.render(readable(report)))
    for linkage, name in zip(LINKAGE, CPP, strict=True):
        assert linkage in unpacked(html.render(report))
        assert linkage not in page
        assert name in page
    assert "<int>" not in html.render(readable(report))


def test_a_report_without_cpp_stays_as_it_is() -> None:
    for made in (toy_report(), flame_report()):
        assert readable(made) == made
        assert cpp_names(made) == {}


def test_scripts_get_both(report: Report) -> None:
    whole = json.loads(data.as_json(report))
    assert whole["demangled"] == dict(sorted(zip(LINKAGE, CPP, strict=True)))
    names = {
        row["function"] for table in whole["tables"] for row in table["rows"] if "function" in row
    }
    assert names & set(LINKAGE)
    assert not names & set(CPP)


def test_a_deep_call_tree_is_no_trouble() -> None:
    node = CallNode("_Z4leafv", 1, 1, ())
    for _ in range(5000):
        node = CallNode("_Z1gi", 1, 0, (node,))
    base = Report("t", "b", None, (), (), (), (), call_tree=node)
    tree = readable(base).call_tree
    assert tree is not None
    assert {each.name for each in tree.nodes()} == {"g(int)", "leaf()"}
    assert [each.name for each in tree.nodes()][-1] == "leaf()"


def test_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    recording = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
    words = ["report", str(recording), "--binary", str(TESTBINS / "x86-64" / "shapes.pie"),
             "--only", "call-edges", "--no-libraries"]  # fmt: skip

    def shown(*more: str) -> str:
        assert main([*words, *more]) == 0
        return capfd.readouterr().out

    area, linkage = (
        "(anonymous namespace)::Square::area() const",
        "_ZNK12_GLOBAL__N_16Square4areaEv",
    )
    assert area in shown("--verbose")
    assert "(anonymous namespace)::Square::area " in shown()
    assert area not in shown()
    assert linkage not in shown()
    assert linkage in shown("--no-demangle")
    assert area not in shown("--no-demangle")
    rows = csv.reader(io.StringIO(shown("--format", "csv"), newline=""))
    assert linkage in {row[-1] for row in rows if row}
    one = shown("--function", "(anonymous namespace)::Square::area", "--format", "json")
    (table,) = json.loads(one)["tables"]
    assert {row["callee"] for row in table["rows"]} == {linkage}
