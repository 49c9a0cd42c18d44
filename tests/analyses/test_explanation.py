from __future__ import annotations

from collections import Counter

from lbr2pgo.analyses.costs import Costs
from lbr2pgo.analyses.explanation import OTHER_FILES, ExplainedBuild, explain
from lbr2pgo.analyses.table import Table
from lbr2pgo.model.exact_counts import Totals

CALLED = Costs(
    instructions=Counter(main=400, work=500),
    jumps=Counter(main=100, work=40),
    calls=Counter({("work", "main"): 50, ("once", "main"): 1}),
    indirect_calls=Counter({("target", "main"): 20}),
    returns=Counter({("work", "main"): 50, ("once", "main"): 1, ("target", "main"): 20}),
)
INLINED = Costs(
    instructions=Counter(main=350, work=450),
    jumps=Counter(main=60, work=50),
    calls=Counter({("once", "main"): 1, ("target", "main"): 15}),
    indirect_calls=Counter({("target", "main"): 5}),
    returns=Counter({("once", "main"): 1, ("target", "main"): 20}),
)
A = ExplainedBuild("a", Totals(1000, 300), CALLED, {("work", "main"): "not inlined: too costly"})
B = ExplainedBuild("b", Totals(910, 160), INLINED, {("work", "main"): "inlined (cost=5)"})


def tables() -> dict[str, Table]:
    return {table.name: table for table in explain(A, B)}


def by_name(table: Table) -> dict[str, tuple[object, ...]]:
    """Saved, A and B by the first name."""
    return {str(row[4]): row[1:4] for row in table.rows}


def test_causes_make_up_the_whole_difference() -> None:
    causes = tables()["explain-causes"]
    assert by_name(causes) == {
        "calls and returns (inlining)": (85, 122, 37),
        "jumps between blocks (layout)": (30, 140, 110),
        "calls through pointers (promotion)": (15, 20, 5),
        OTHER_FILES: (10, 18, 8),
    }
    assert [row[0] for row in causes.rows] == [85 / 140, 30 / 140, 15 / 140, 10 / 140]


def test_functions_make_up_the_difference_in_instructions_largest_first() -> None:
    functions = tables()["explain-functions"]
    assert by_name(functions) == {
        "main": (50, 400, 350), "work": (50, 500, 450), OTHER_FILES: (-10, 100, 110),
    }  # fmt: skip
    assert list(functions.column("share")) == [50 / 90, 50 / 90, -10 / 90]


def test_what_was_inlined_stands_with_what_the_compiler_said() -> None:
    (inlined, called) = tables()["explain-calls"].records()
    assert (inlined["function"], inlined["caller"]) == ("work", "main")
    assert (inlined["saved"], inlined["a"], inlined["b"]) == (100, 100, 0)
    assert inlined["remark_a"] == "not inlined: too costly"
    assert inlined["remark_b"] == "inlined (cost=5)"
    assert (called["function"], called["saved"], called["remark_a"]) == ("target", -15, None)


def test_calls_that_are_made_as_often_are_not_told() -> None:
    assert "once" not in tables()["explain-calls"].column("function")


def test_promoted_calls_go_through_pointers_less_often() -> None:
    (row,) = tables()["explain-promoted"].records()
    assert (row["function"], row["caller"], row["a"], row["b"]) == ("target", "main", 20, 5)


def test_layout_is_told_by_function_where_it_got_worse_too() -> None:
    assert by_name(tables()["explain-layout"]) == {"main": (40, 100, 60), "work": (-10, 40, 50)}


def test_equal_builds_differ_in_nothing() -> None:
    assert [len(table) for table in explain(A, A)] == [0] * 5


def test_shares_are_not_known_where_the_sums_are_equal() -> None:
    same = ExplainedBuild("b", Totals(1000, 300), INLINED, {})
    assert set(explain(A, same)[1].column("share")) == {None}


def test_without_remarks_it_says_how_to_get_them() -> None:
    silent = ExplainedBuild("b", B.totals, INLINED, {})
    _, _, calls, *_ = explain(silent, silent)
    assert any("--remarks" in note for note in calls.notes)
    assert tables()["explain-calls"].notes == ()
