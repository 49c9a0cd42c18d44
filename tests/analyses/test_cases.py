"""Values of switches and conditions in programs of real compilers, by the lines of their source."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from builders.evidence import gather_sources, program, source
from builders.fixtures import Tool
from builders.sources import Sample

from lbr2pgo.analyses.cases import case_values, conditions, written
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.grouping import grouped
from lbr2pgo.analyses.indirect_targets import indirect_targets
from lbr2pgo.evidence.entries import ENTRIES
from lbr2pgo.program.blocks.indirect_jumps import switch_cases
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

HEAD = "volatile int sink; int step(int n) { return n; }\n"
TABLE, FEW = (65, 66, 67, 70, 71, 72, 80), (3, 40, 1000)
TWICE = """
#define BIG(n) ((n) > 100 || step(n) < -50)
__attribute__((noinline)) int twice(int n, int m) {
  if (n == 7 || step(m) == 9) sink = 1;
  if (BIG(n)) sink = 2;
  return sink;
}
"""


def switch(name: str, values: tuple[int, ...]) -> str:
    cases = "\n".join(f"  case {v}: sink = {v} * n; step({v}); break;" for v in values)
    return (
        f"__attribute__((noinline)) void {name}(int c, int n) {{ switch (c) {{\n{cases}\n"
        f"  default: sink = n - {len(values)}; step(9); }} }}\n"
    )


TEXT = (
    f"{HEAD}{switch('table', TABLE)}{switch('few', FEW)}{TWICE}"
    "int main(int n, char **a) { table(n, n); few(n, n); return twice(n, n); }\n"
)
LINES = TEXT.splitlines()


@pytest.fixture(
    scope="module",
    params=[
        ("gcc", "-O1"),
        ("gcc", "-O2"),
        ("gcc", "-Os"),
        ("clang-22", "-O0"),
        ("clang-22", "-O1"),
        ("clang-22", "-O2"),
        ("clang-22", "-Os"),
    ],
    ids="".join,
)
def built(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tool: Tool,
    run: Callable[..., object],
) -> Program:
    folder = tmp_path_factory.mktemp("switch")
    (folder / "a.c").write_text(TEXT)
    compiler, level = request.param
    run(tool(compiler), "-g", level, "-fno-inline", "a.c", "-o", "a", cwd=folder)
    return Program.open(folder / "a")


def start_of(built: Program, name: str) -> np.ndarray:
    return built.functions.start[[built.functions.by_name(name)]]


def of_function(built: Program, name: str) -> Evidence:
    """A recording in which each branch of a function was taken, tables to all their targets."""
    start = start_of(built, name)
    code = built.instructions_for(start)
    jumps = np.flatnonzero(np.isin(code.kind, (Kind.COND, Kind.JUMP)) & code.has_target)
    pairs = [(int(code.address[i]), int(code.target[i])) for i in jumps]
    cases = switch_cases(built, start)
    pairs += sorted(set(zip(cases.jump.tolist(), cases.target.tolist(), strict=True)))
    made = source(*(Sample([pair]) for pair in pairs))
    return gather_sources([made], built, also=(ENTRIES,)).evidence


def branches_of(found: Evidence) -> np.ndarray:
    code = found.flow.instructions
    return code.address[code.kind == Kind.COND]


def test_values_of_a_table_are_those_of_the_source(built: Program) -> None:
    cases = switch_cases(built, start_of(built, "table"))
    where = built.debug_info().lines(cases.target).line.tolist()
    found = dict(zip(cases.value.tolist(), (LINES[line - 1] for line in where), strict=True))
    assert found.keys() == set(range(65, 81))
    for value, line in found.items():
        assert line.startswith(f"  case {value}:" if value in TABLE else "  default:")
    assert (cases.default > 0).all()


def test_tables_of_targets_say_the_case(built: Program) -> None:
    found = of_function(built, "table")
    by_site = indirect_targets(found, None)[1]
    assert len(by_site) == len(TABLE) + 1
    for row in by_site.records():
        line = LINES[int(str(row["target_line"]).rpartition(":")[2]) - 1].strip()
        assert line.startswith(f"{row['case']}:")
    told = {row["case"] for row in grouped(found, ("case", "srcline_to"), None).records()}
    assert told == {*(f"case {value}" for value in TABLE), "default", None}


def test_comparisons_say_the_value(built: Program) -> None:
    """A switch of few values becomes comparisons with them, or with neighbours, by order."""
    found = of_function(built, "few")
    told = [each for each in conditions(found, branches_of(found)) if each]
    assert {f"== {value}" for value in FEW} <= set(told) | {
        each.replace("!=", "==") for each in told
    }


def test_branches_of_one_line_are_told_apart(built: Program) -> None:
    found = of_function(built, "twice")
    branches = branches_of(found)
    told = conditions(found, branches)
    columns = found.names.columns(branches)
    keys = list(zip(columns, told, strict=True))
    assert len(set(keys)) >= 3
    line = f":{1 + next(i for i, text in enumerate(LINES) if 'n == 7' in text)}:"
    assert all(re.search(r":\d+:\d+$", str(column)) for column in columns)
    assert any(line in str(column) for column in columns)


def test_values_in_words() -> None:
    assert written([1]) == "case 1"
    assert written([-1, 0, 5]) == "case -1..0, 5"
    assert written(range(0, 40, 2)) == "case 0, 2, 4, 6, 8, 10, and 14 more"


def test_what_no_table_tells_is_not_known() -> None:
    toy = gather_sources([source(Sample([(0x1018, 0x1020)]))], program()).evidence
    assert case_values(toy, np.array([0x1018], np.uint64), np.array([0x1020], np.uint64)) == [None]
    assert conditions(toy, np.array([0x1016], np.uint64)) == [None]
