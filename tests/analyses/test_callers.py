from __future__ import annotations

from dataclasses import replace

from builders.evidence import evidence
from builders.sources import Sample

from lbr2pgo.analyses.callers import callers
from lbr2pgo.analyses.table import Table

MAIN, DISPATCH = 0x1005, 0x1022
"""Return addresses in them."""
BRANCH = [(0x1041, 0x1005)]
G_OF_MAIN = Sample(BRANCH, weight=6, chain=[0x1040, MAIN])
G_OF_DISPATCH = Sample(BRANCH, weight=3, chain=[0x1040, DISPATCH, MAIN])
H_OF_G = Sample(BRANCH, weight=4, chain=[0x1050, 0x1041, DISPATCH, MAIN])


def tree(table: Table) -> list[tuple[object, ...]]:
    return [(r["depth"], r["function"], r["total"], r["own"]) for r in table.records()]


def test_a_hot_function_stands_above_its_callers_and_those_above_theirs() -> None:
    found = evidence(G_OF_MAIN, G_OF_DISPATCH, H_OF_G)
    assert tree(callers(found)) == [
        (0, "g", 13, 9), (1, "dispatch", 7, 3), (2, "main", 7, 3), (1, "main", 6, 6),
        (0, "h", 4, 4), (1, "g", 4, 4), (2, "dispatch", 4, 4), (3, "main", 4, 4),
    ]  # fmt: skip
    assert callers(found).column("share")[:4] == (1, 7 / 13, 7 / 13, 6 / 13)


def test_of_one_function_all_samples_count_that_it_is_in() -> None:
    found = evidence(G_OF_MAIN, G_OF_DISPATCH, H_OF_G)
    only = replace(found, function=found.program.regions.by_name("dispatch"))
    assert tree(callers(only)) == [(0, "dispatch", 7, 0), (1, "main", 7, 0)]


def test_a_function_that_was_never_seen_has_no_tree() -> None:
    found = evidence(G_OF_MAIN)
    only = replace(found, function=found.program.regions.by_name("h"))
    assert callers(only).rows == ()
    assert "record --call-graph" not in callers(only).notes[0]


def test_recursion_is_one_frame() -> None:
    found = evidence(Sample(BRANCH, chain=[0x1040, 0x1041, 0x1041, MAIN, MAIN]))
    assert tree(callers(found)) == [(0, "g", 1, 1), (1, "main", 1, 1)]


def test_rare_callers_are_left_out_unless_all_are_asked_for() -> None:
    rare = Sample(BRANCH, chain=[0x1040, DISPATCH])
    found = evidence(replace(G_OF_MAIN, weight=1000), rare)
    assert [row[1] for row in tree(callers(found))] == ["g", "main"]
    assert [row[1] for row in tree(callers(found, None))] == ["g", "main", "dispatch"]


def test_without_call_stacks_it_says_how_to_get_some() -> None:
    table = callers(evidence(Sample(BRANCH)))
    assert table.rows == ()
    assert "lbr2pgo record --call-graph" in table.notes[0]
