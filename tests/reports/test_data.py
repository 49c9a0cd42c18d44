from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import pytest
from builders.elf import Function
from builders.evidence import FUNCTIONS, gather_sources, program, source
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.reports import data
from lbr2pgo.reports.build import ReportOptions, make_report, report_of
from lbr2pgo.reports.model import CallNode, Report
from lbr2pgo.support.errors import InputError

HOSTILE = 'evil\x1b[31m"\r\n,<script>alert(1)</script>\u202e'


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, libraries=False, views=2))


def hostile() -> Report:
    functions = (Function(HOSTILE, 0x1000, 0x1A), *FUNCTIONS[1:])
    sample = Sample([(0x1016, 0x1005)])
    gathered = gather_sources([source(sample)], program(functions))
    return report_of(gathered, ReportOptions((RECORDING,), PIE, libraries=False))


def test_json_holds_every_table_with_typed_values(report: Report) -> None:
    whole = json.loads(data.as_json(report))
    assert whole["format"] == "lbr2pgo-report-1"
    tables = {table["name"]: table for table in whole["tables"]}
    assert list(tables) == [table.name for table in report.tables]
    row = tables["hot-branches"]["rows"][0]
    assert isinstance(row["count"], int)
    assert 0 < row["share"] < 1
    assert int(row["from_address"], 16) > 0
    kinds = {column["name"]: column["kind"] for column in tables["hot-branches"]["columns"]}
    assert kinds["from_address"] == "address"
    assert list(kinds) == list(row)
    assert tables["hot-branches"]["found"] == 90


def test_json_holds_the_waterfall_charts_and_graphs(report: Report) -> None:
    whole = json.loads(data.as_json(report))
    assert whole["waterfall"][0]["step"] == "samples_read"
    assert len(whole["timings"]) == len(report.timings)
    assert whole["functions"][0]["blocks"][0]["start"].startswith("0x")
    assert max(block["heat"] for block in whole["functions"][0]["blocks"]) == 1
    assert whole["functions"][0]["code"]["name"] == "function"
    assert whole["call_tree"] is None


def test_the_same_input_gives_the_same_bytes(report: Report) -> None:
    again = make_report(ReportOptions((RECORDING,), PIE, libraries=False, views=2))
    assert data.as_json(again) == data.as_json(report)
    assert data.as_csv(again) == data.as_csv(report)


def test_a_deep_call_tree_is_no_trouble() -> None:
    node = CallNode("leaf", 1, 1, ())
    for i in range(5000):
        node = CallNode(f"f{i}", 1, 0, (node,))
    base = Report("t", "b", None, (), (), (), (), call_tree=node)
    text = data.as_json(base)
    assert text.count('"callees"') == 5001


def test_a_call_tree_in_json() -> None:
    leaves = (CallNode('a"', 2, 2, ()), CallNode("b", 1, 1, ()))
    base = Report("t", "b", None, (), (), (), (), call_tree=CallNode("[all]", 3, 0, leaves))
    tree = json.loads(data.as_json(base))["call_tree"]
    assert tree["total"] == 3
    assert [callee["name"] for callee in tree["callees"]] == ['a"', "b"]


def test_csv_is_one_table_after_another(report: Report) -> None:
    rows = list(csv.reader(io.StringIO(data.as_csv(report), newline="")))
    names = [row[0][2:] for row in rows if len(row) == 1 and row[0].startswith("# ")]
    assert names == [t.name for t in report.tables] + ["function", "function"]
    at = rows.index(["# hot-branches"])
    assert rows[at + 1][:3] == ["share", "count", "from_function"]
    first = dict(zip(rows[at + 1], rows[at + 2], strict=True))
    assert first["from_address"].startswith("0x")


def test_unknown_values_are_empty_in_csv() -> None:
    columns = (Column("a", "A", Unit.TEXT), Column("b", "B", Unit.ADDRESS))
    base = Report("t", "b", None, (), (), (), (Table("x", "X", columns, ((None, None),)),))
    assert data.as_csv(base) == "a,b\r\n,\r\n"


def test_hostile_names_are_data_in_json() -> None:
    whole = json.loads(data.as_json(hostile()))
    ((row, *_),) = [t["rows"] for t in whole["tables"] if t["name"] == "hot-branches"]
    assert row["from_function"] == HOSTILE
    assert "\x1b" not in data.as_json(hostile())
    assert "\u202e" not in data.as_json(hostile())


def test_hostile_names_break_no_csv_and_steer_no_terminal() -> None:
    text = data.as_csv(hostile())
    assert "\x1b" not in text
    assert "\u202e" not in text
    rows = list(csv.reader(io.StringIO(text, newline="")))
    at = rows.index(["# hot-branches"])
    assert rows[at + 2][2].startswith("evil\\x1b[31m")


def test_a_table_checks_its_rows() -> None:
    with pytest.raises(ValueError, match="rows of"):
        Table("x", "X", (Column("a", "A", Unit.TEXT),), (("1", "2"),))


def call_stacks(names: Sequence[Function]) -> Report:
    stack = Sample([(0x1000, 0x1040)], ip=0x1041, event=0, weight=3)
    shallow = Sample([(0x7FFF0000, 0x1000)], ip=0x1001, event=0)
    gathered = gather_sources([source(stack, shallow, filters=1 | 1 << 11)], program(names))
    return report_of(gathered, ReportOptions((RECORDING,), PIE, libraries=False))


def test_folded_call_stacks_are_lines_with_a_count() -> None:
    assert data.as_folded(call_stacks(FUNCTIONS)) == "main;g 3\n[outside];main 1\n"


def test_no_name_breaks_a_folded_stack() -> None:
    text = data.as_folded(call_stacks([Function("a;b\n\x1b 7", 0x1000, 0x1A), *FUNCTIONS[1:]]))
    lines = text.splitlines()
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["3", "1"]
    assert all(line.count(";") == 1 for line in lines)
    assert all(line.isprintable() for line in lines)


def test_other_recordings_have_no_folded_stacks(report: Report) -> None:
    with pytest.raises(InputError, match="holds no call stacks") as error:
        data.as_folded(report)
    assert "--call-graph lbr" in str(error.value.cure)
