"""The public Python API: `import lbr2pgo`."""

from __future__ import annotations

import csv
import doctest
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING

import lbr2pgo
from lbr2pgo.analyses.table import Unit
from lbr2pgo.reports.data import as_csv
from lbr2pgo.sources.base import StackSource
from lbr2pgo.support.addresses import SLOT_SIZE, PlacedAddress


def test_every_public_name_is_there_and_documented() -> None:
    for name in lbr2pgo.__all__:
        assert getattr(lbr2pgo, name).__doc__, name


def test_other_names_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'lbr2pgo' has no attribute 'convertt'"):
        lbr2pgo.convertt  # noqa: B018
    assert not hasattr(lbr2pgo, "__wrapped__")


def test_the_package_lists_its_names() -> None:
    assert set(lbr2pgo.__all__) <= set(dir(lbr2pgo))


def test_what_is_public_is_what_the_docs_show() -> None:
    """`__init__.pyi` is the one list; docs/api.md shows each of it, and nothing else."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    shown = re.findall(r"^::: lbr2pgo\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == lbr2pgo.__all__


def test_the_example_of_the_package_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (lbr2pgo.__doc__ or "").replace("# doctest: +SKIP", "")
    names: dict[str, object] = {}
    for name, source in (("perf.data", RECORDING), ("app", PIE)):
        shutil.copy(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text, names, "lbr2pgo", None, 0)
    assert len(test.examples) >= 3
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test).failed == 0
    assert (tmp_path / "app.prof").read_bytes().startswith(b"run:")


def test_the_road_step_by_step() -> None:
    """What `convert` does, from the public parts."""
    program = lbr2pgo.Program.open(PIE)
    counted = lbr2pgo.count(lbr2pgo.open(RECORDING), program.image.layout)
    done = lbr2pgo.convert(RECORDING, PIE)
    assert list(counted.counts.rows()) == list(done.counts.rows())
    both = lbr2pgo.merge([counted.counts, done.counts])
    assert both.count.sum() == 2 * done.counts.count.sum()
    assert lbr2pgo.DebugInfo.open(program.image).present


def test_errors_are_one_family() -> None:
    for name in ("InputError", "OutputError", "MissingToolError", "EmptyProfileError",
                 "IncompleteError"):  # fmt: skip
        assert issubclass(getattr(lbr2pgo, name), lbr2pgo.Lbr2pgoError)
    with pytest.raises(lbr2pgo.InputError) as raised:
        lbr2pgo.open("/no/such/file")
    assert (raised.value.where, raised.value.exit_code) == ("/no/such/file", 2)
    assert raised.value.cure
    assert str(raised.value).endswith(raised.value.cure)


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_are_strings_or_paths_one_or_several(tmp_path: Path, kind: type) -> None:
    recording, binary = kind(RECORDING), kind(PIE)
    one = lbr2pgo.convert(recording, binary, llvm=kind(tmp_path / "a"))
    both = lbr2pgo.convert([recording, recording], binary, fdata=kind(tmp_path / "b"))
    assert one.written == (tmp_path / "a",)
    assert both.counts.count.sum() == 2 * one.counts.count.sum()
    assert lbr2pgo.report(recording, binary, only="hot-branches").tables


def test_what_can_be_gone_through_can_be_gone_through_again() -> None:
    source = lbr2pgo.open(RECORDING)
    assert isinstance(source, StackSource)
    batches = source.batches()
    assert [len(batch) for batch in batches] == [len(batch) for batch in batches] != []
    rows = lbr2pgo.convert(RECORDING, PIE).counts.rows()
    assert list(rows) == list(rows) != []


def test_an_output_may_have_options(tmp_path: Path) -> None:
    binary = lbr2pgo.output("llvm", tmp_path / "binary", form="extbinary")
    done = lbr2pgo.convert(RECORDING, PIE, llvm=tmp_path / "text", outputs=[binary])
    assert done.written == (tmp_path / "text", tmp_path / "binary")
    assert (tmp_path / "text").read_bytes() != (tmp_path / "binary").read_bytes()


def test_samples_are_chosen_as_on_the_command_line() -> None:
    assert lbr2pgo.convert(RECORDING, PIE, event="taken-branches:u").tallies["samples_selected"]
    with pytest.raises(lbr2pgo.EmptyProfileError):
        lbr2pgo.convert(RECORDING, PIE, pid=1)
    with pytest.raises(lbr2pgo.InputError, match="no event is called cycles"):
        lbr2pgo.report(RECORDING, PIE, event="cycles")


def test_a_recording_may_be_read_again() -> None:
    source = lbr2pgo.open(str(RECORDING))
    readings = [sum(len(batch) for batch in source.batches()) for _ in range(2)]
    assert readings == [128, 128]


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: lbr2pgo.convert(5), "profiles: a path or paths are needed, not 5"),
        (lambda: lbr2pgo.convert([None]), "profiles: a path is needed, not None"),
        (lambda: lbr2pgo.convert(RECORDING, 5), "binary: a path or paths are needed, not 5"),
        (lambda: lbr2pgo.convert(RECORDING, PIE, llvm=True), "llvm: a path is needed, not True"),
        (lambda: lbr2pgo.convert(RECORDING, PIE, lvm="x"), "there is no argument lvm"),
        (lambda: lbr2pgo.open(None), "path: a path is needed, not None"),
    ],
)
def test_a_wrong_argument_is_named(call, argument: str) -> None:
    with pytest.raises(TypeError, match=argument):
        call()


def test_a_function_is_a_graph() -> None:
    """Hot loops, dominators and the like are questions to networkx."""
    graph = lbr2pgo.flow_graph(RECORDING, PIE, "walk")
    entry = next(block for block, data in graph.nodes(data=True) if data["is_entry"])
    assert {entry, *nx.immediate_dominators(graph, entry)} == set(graph)
    report = lbr2pgo.report(RECORDING, PIE, only="function", function="walk")
    blocks = report.functions[0].graph.blocks
    counts = nx.get_node_attributes(graph, "count")
    assert counts == {block.start: block.count for block in blocks}
    assert max(counts.values()) > 0


def test_a_graph_of_what_is_not_there() -> None:
    with pytest.raises(lbr2pgo.InputError, match="is called wlak\nNear matches: walk"):
        lbr2pgo.flow_graph(RECORDING, PIE, "wlak")
    with pytest.raises(lbr2pgo.InputError, match="/no/such/program"):
        lbr2pgo.flow_graph(RECORDING, "/no/such/program", "walk")
    with pytest.raises(lbr2pgo.InputError, match="/no/such/recording"):
        lbr2pgo.flow_graph("/no/such/recording", PIE, "walk")


def test_calls_are_a_graph() -> None:
    """Who is reached from where is a question to networkx."""
    graph = lbr2pgo.call_graph(RECORDING, PIE)
    assert {"next_token", "compile_expression"} <= nx.descendants(graph, "main")
    rows = lbr2pgo.report(RECORDING, PIE, only="call-edges", top=None).tables[0].records()
    wanted = {(row["caller"], row["callee"]): row["count"] for row in rows}
    assert nx.get_edge_attributes(graph, "count") == wanted
    with pytest.raises(lbr2pgo.InputError, match="/no/such/program"):
        lbr2pgo.call_graph(RECORDING, "/no/such/program")


def test_addresses_are_what_csv_says() -> None:
    """Of every table and view of code; within, those of libraries have a slot."""
    found = lbr2pgo.report(RECORDING, PIE)
    views = [view.code for view in found.functions]
    tables = {table.name: table for table in (*found.tables, *views) if len(table)}
    assert any(table.rows != table.placed_rows for table in tables.values())
    blocks = [each for each in found.timings if not each.is_loop]
    placed = replace(blocks[0], placed_start=PlacedAddress(2 * SLOT_SIZE + 16))
    assert (placed.start, placed.end) == (16, blocks[0].end)
    ends = {(each.start, each.end) for each in blocks}
    assert ends <= {(row["address"], row["end_address"]) for row in tables["latency"].records()}
    sections = csv.reader(as_csv(found).splitlines())
    written: dict[str, list[list[str]]] = {}
    for row in sections:
        if row and row[0].startswith("# "):
            rows = written.setdefault(row[0][2:], [])
        elif row:
            rows.append(row)
    for name, table in tables.items():
        head, *lines = written[name]
        for column in table.columns:
            if column.kind is Unit.ADDRESS:
                at = head.index(column.name)
                said = [
                    f"{value:#x}" if value is not None else ""
                    for value in table.column(column.name)
                ]
                assert said == [line[at] for line in lines][: len(said)]
    graph = lbr2pgo.flow_graph(RECORDING, PIE, "main")
    assert set(graph) <= set(range(0x1000, 0x10000))


def test_what_notebooks_show_of_results_is_short() -> None:
    """A line of what it is, and a screen at most."""
    done = lbr2pgo.convert(RECORDING, PIE)
    report = lbr2pgo.report(RECORDING, PIE)
    source = lbr2pgo.open(RECORDING)
    shown = (
        done, done.counts, done.flow, report, *report.tables, *lbr2pgo.waterfall_rows(done.tallies),
        lbr2pgo.check(RECORDING, PIE), lbr2pgo.compare(RECORDING, RECORDING, PIE), source,
        next(iter(source.batches())), lbr2pgo.Program(PIE), lbr2pgo.Program(str(PIE)).debug_info(),
    )  # fmt: skip
    assert [repr(each) for each in shown if len(repr(each)) > 240 or "\n" in repr(each)] == []
    assert repr(source) == f"<perf.data: {RECORDING}>"
    html = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert len(html) > len(report.tables)
    assert all(page.startswith("<iframe ") or page.count("<tr>") <= 21 for page in html)


def test_a_report_is_written_as_a_page(tmp_path: Path) -> None:
    report = lbr2pgo.report(RECORDING, PIE, functions=2)
    report.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert re.findall(r'id="f-([0-9a-f]+)"', page) == [f"{f.start:x}" for f in report.functions]
    assert len(report.functions) == 2


def test_what_changed_is_what_the_command_line_says(command) -> None:
    changed = lbr2pgo.compare(RECORDING, STATIC_RECORDING, PIE, old_binary=STATIC)
    words = ("--against", STATIC_RECORDING, "--old-binary", STATIC, "--format", "json")
    told = json.loads(command("report", RECORDING, "--binary", PIE, *words).out)
    assert list(changed.summary) == told["summary"]
    assert [len(table) for table in changed.tables] == [
        len(each["rows"]) for each in told["tables"]
    ]
