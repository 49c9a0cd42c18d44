from __future__ import annotations

from dataclasses import replace

from builders.pages import toy_report

from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.reports.page_code import code_parts, function_data


def test_code_that_never_ran_is_one_row() -> None:
    columns = (Column("count", "", Unit.COUNT), Column("address", "", Unit.ADDRESS))
    counts = [5, 0, 0, *[3], *[0] * 9, 1]
    code = Table("function", "", columns, tuple((c, 0x10 + i) for i, c in enumerate(counts)))
    assert [len(part) for part in code_parts(code)] == [1, 1, 1, 1, 9, 1]


def test_a_function_is_told_by_bytes_from_its_start() -> None:
    view = next(view for view in toy_report().functions if view.name == "main")
    told = function_data(view)
    texts: list[str] = told["texts"]  # type: ignore[assignment]
    code: dict[str, list[int]] = told["code"]  # type: ignore[assignment]
    assert told["start"] == "1000"
    assert texts[told["name"]] == "main"  # type: ignore[call-overload]
    assert code["at"][:3] == [0, 5, 6]
    assert texts[code["text"][2]].startswith("jne")
    assert code["block"][2] == code["block"][1]
    assert sum(code["size"]) == len(view.code)
    back = next(branch for branch in told["branches"] if branch[0] == 0x16)  # type: ignore[attr-defined]
    assert back[1][0] > 0
    target = back[3][0]
    assert (target[0], texts[target[1]]) == ("1005", "main")
    assert [start for start, *_ in told["blocks"]][:2] == [0, 5]  # type: ignore[attr-defined]


def test_edges_that_nothing_took_are_left_out() -> None:
    view = toy_report().functions[0]
    edges = tuple(replace(edge, count=0) for edge in view.graph.edges)
    told = function_data(replace(view, graph=replace(view.graph, edges=edges)))
    assert view.graph.edges
    assert told["edges"] == []
