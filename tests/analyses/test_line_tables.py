from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.line_tables import (
    line_call_edges,
    line_hot_branches,
    line_mispredictions,
)
from lbr2pgo.analyses.table import Table
from lbr2pgo.model.line_branches import TEXT_COLUMNS, LineBranches


def branches(*rows: tuple[str, str, int, int], is_silent: bool = False) -> LineBranches:
    """Source and target as `function@line`, samples, mispredictions."""
    texts: dict[str, tuple[str, ...]] = {name: ("",) * len(rows) for name in TEXT_COLUMNS}
    for at, side in enumerate(("source", "target")):
        ends = [str(row[at]).partition("@") for row in rows]
        texts[f"{side}_function"] = tuple(end[0] for end in ends)
        texts[f"{side}_line"] = tuple(end[2] for end in ends)
    missed = None if is_silent else np.array([row[3] for row in rows], np.int64)
    samples = np.array([row[2] for row in rows], np.int64)
    return LineBranches(**texts, samples=samples, mispredicted=missed)


ONE = branches(("f@a.c:1", "g@a.c:9", 5, 1), ("f@a.c:2", "f@a.c:1", 7, 0))
TWO = branches(("f@a.c:1", "g@a.c:9", 4, 2))


def column(table: Table, name: str) -> list[object]:
    at = [each.name for each in table.columns].index(name)
    return [row[at] for row in table.rows]


def test_equal_lines_of_all_inputs_are_one_branch() -> None:
    table = line_hot_branches([ONE, TWO])
    assert column(table, "count") == [9, 7]
    assert column(line_hot_branches([ONE, TWO], top=1), "count") == [9]


def test_mispredictions_are_of_inputs_that_tell_them() -> None:
    silent = branches(("f@a.c:1", "g@a.c:9", 100, 0), is_silent=True)
    assert line_mispredictions([silent]).rows == ()
    table = line_mispredictions([ONE, silent, TWO])
    assert column(table, "mispredicted") == [3, 0]
    assert column(table, "rate") == [3 / 9, 0]


def test_calls_are_from_one_function_to_another() -> None:
    table = line_call_edges([ONE, TWO])
    pairs = list(zip(column(table, "caller"), column(table, "callee"), strict=True))
    assert pairs[0] == ("f", "g")
    assert column(table, "count")[0] == 9
