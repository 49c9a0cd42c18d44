"""Paths that are cloned: which ones, in which order, and what clang makes of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders.fixtures import Run, Tool
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.propeller import path_cloning as module
from lbr2pgo.profiles.propeller.format import PropellerOutput
from lbr2pgo.profiles.propeller.path_cloning import MOST_GROWTH
from lbr2pgo.profiles.propeller.path_cloning import Path as ClonedPath
from lbr2pgo.support.errors import InputError

MERGING = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned mixed(unsigned x, unsigned y) {
  unsigned r = y;
  switch (x & 7) {
  case 0: r = r * 7 + x; break;
  case 1: r ^= x << 3; break;
  case 2: r = (r >> 2) - x; break;
  case 3: r = r / 3 + 5; break;
  case 4: r |= x * 9; break;
  case 5: r = ~r + x; break;
  case 6: r = r % 1021 + x; break;
  default: r -= x * 11;
  }
  if (r & 0x100000) puts("");
  r ^= r << 13; r ^= r >> 17; r ^= r << 5; r += x * 2654435761u; r ^= r >> 16; r *= 2246822519u;
  return r & 0xfffff;
}
int main(int argc, char **argv) {
  unsigned sum = 1, rounds = atoi(argv[1]);
  for (unsigned i = 0; i < rounds; i++) sum = mixed(sum >> 3 ^ i, sum);
  return printf("%u\\n", sum) < 0;
}
"""
COLD = "".join(
    f"unsigned cold{n}(unsigned x) {{ return x % {n + 3} ? x * {n} / 7 : x / {n + 9} + x % 5; }}\n"
    for n in range(400)
)
"""So that there is room for clones, which may take a share of all code."""
FLAGS = ("-O2", "-g1", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--build-id")


def path(before: int, *cloned: int, shares: tuple[dict[int, float], ...] = ()) -> ClonedPath:
    return ClonedPath(before, cloned, shares or ({},) * len(cloned), 1.0, 1)


numbers = st.lists(st.integers(0, 6), min_size=2, max_size=5, unique=True)


@given(st.lists(numbers, max_size=8, unique_by=lambda each: tuple(each[:2])))
def test_no_path_needs_an_edge_that_an_earlier_one_took(given: list[list[int]]) -> None:
    paths = [path(*each) for each in given]
    gone: set[tuple[int, int]] = set()
    ordered = list(module._ordered(paths))
    for each in ordered:
        assert not gone & set(pairwise((each.before, *each.cloned)))
        gone.add((each.before, each.cloned[0]))
    edges = Counter(edge for each in paths for edge in pairwise(each.cloned))
    if not any(edges[each.before, each.cloned[0]] for each in paths):
        assert ordered == paths


def test_a_path_over_an_edge_comes_before_the_one_that_takes_it() -> None:
    taking, passing = path(1, 2), path(0, 1, 2)
    assert list(module._ordered([taking, passing])) == [passing, taking]
    assert list(module._ordered([path(0, 1, 2), path(1, 2, 0, 1)])) == [path(0, 1, 2)]


def function(edges: dict[tuple[int, int], float], sizes: int = 10) -> Any:
    """One whose blocks stand in the order of their numbers."""
    rows = sorted({row for edge in edges for row in edge})
    leads: dict[int, dict[int, float]] = {row: {} for row in rows}
    for (source, target), count in edges.items():
        leads[source][target] = count
    count = {
        row: max(sum(leads[row].values()), sum(leads[r].get(row, 0) for r in rows)) for row in rows
    }
    known = SimpleNamespace(
        rows=lambda _: rows, size=dict.fromkeys(rows, sizes), count=count, edges=leads
    )
    return module._Function(known, 0)


DIAMOND = {(0, 1): 60.0, (0, 2): 40.0, (1, 3): 60.0, (2, 3): 40.0, (3, 4): 50.0}


def test_flow_is_the_same_with_clones() -> None:
    made = function(DIAMOND)
    assert made._clone(path(2, 3, 4, shares=({4: 0.5}, {})))
    assert made._edges[2, 0] == {(3, 1): 40.0}
    assert made._edges[3, 1] == {(4, 1): 20.0}
    assert made._edges[3, 0] == {(4, 0): 30.0}
    assert made._count[3, 0] == 60.0
    assert made._count[4, 1] == 20.0
    into = sum(count for leads in made._edges.values() for to, count in leads.items() if to[0] == 4)
    assert into == 50.0


def test_clones_stay_only_where_fewer_branches_are_taken() -> None:
    gains = function(DIAMOND).with_clones([path(2, 3, shares=({4: 0.0},))])
    assert gains is not None
    assert gains.paths == ((2, 3),)
    assert sorted(gains.order) == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (4, 0)]
    assert gains.order[0] == (0, 0)
    assert function({(0, 1): 9.0, (1, 2): 9.0}).with_clones([path(1, 2)]) is None


def lbr2pgo(*words: object) -> tuple[object, ...]:
    return sys.executable, "-m", "lbr2pgo", *words


@pytest.mark.parametrize("compiler", ["clang-22", "clang++-22"])
def test_clang_clones_the_paths_and_takes_fewer_branches(
    tmp_path: Path, tool: Tool, run: Run, compiler: str
) -> None:
    source = tmp_path / ("a.c" if compiler == "clang-22" else "a.cc")
    source.write_text(MERGING + COLD)
    build = (tool(compiler), *FLAGS, source)
    mapped, recording = tmp_path / "mapped", tmp_path / "perf.data"
    run(*build, "-fbasic-block-address-map", "-o", mapped)
    run(*lbr2pgo("record", "--emulate", "-c", 997, "-o", recording, "--", mapped, 20000))
    made = []
    for name, asked in (("plain", ()), ("cloned", ("--propeller-clone-paths",))):
        clusters, order, out = (tmp_path / f"{name}{end}" for end in (".cc", ".ld", ""))
        to = ("--propeller-cc", clusters, "--propeller-ld", order, *asked)
        run(*lbr2pgo("convert", recording, "--binary", mapped, *to))
        assert ("\np " in clusters.read_text()) == (name == "cloned")
        links = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={order}"
        done = run(*build, f"-fbasic-block-sections=list={clusters}", links, "-o", out)
        assert done.stderr == ""  # it warns of paths that are none, and ends with 0
        made.append(out)
    said = run(*lbr2pgo("measure", "--runs", 0, "--format", "json", *made, "--", 3000)).stdout
    answer = json.loads(said)
    assert answer["differing_outputs"] == []
    cloned = answer["programs"][1]
    assert cloned["ratios"]["taken"] < 0.98
    sizes = [each["size"]["text"] for each in answer["programs"]]
    assert sizes[0] < sizes[1] < sizes[0] * (1 + MOST_GROWTH)
    checked = run(*lbr2pgo("check", clusters, "--binary", mapped), check=False)
    assert "stale" in checked.stdout


@pytest.mark.parametrize("others", [{"version": "0"}, {"counts": True}])
def test_clones_go_with_version_1_alone(others: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="clones of paths go with version 1"):
        PropellerOutput(Path("x"), clone_paths=True, **others)
