"""Paths that are cloned: which ones, in which order, and what clang makes of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Run, Tool, lbr2pgo
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts
from lbr2pgo.profiles.propeller import path_cloning as module
from lbr2pgo.profiles.propeller.block_flow import BlockEdges, BlockFit, BlockFlow
from lbr2pgo.profiles.propeller.block_layout import Layout
from lbr2pgo.profiles.propeller.format import PropellerOutput
from lbr2pgo.profiles.propeller.path_cloning import MOST_GROWTH, ClonedPath, clone_paths
from lbr2pgo.program.block_map import INDIRECT_BRANCH, LANDING_PAD, BlockMap
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import image_array, placed_addresses
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
COMPILED = ("-O2", "-g1", "-ffunction-sections")
LINKED = ("-fuse-ld=lld", "-Wl,--build-id")


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


def test_a_clone_goes_where_its_block_goes_by_then() -> None:
    """So does clang's: 3 leads to the clone of 4 when it is cloned."""
    made = function(DIAMOND)
    assert made._clone(path(3, 4))
    assert made._clone(path(2, 3, shares=({4: 0.5},)))
    assert made._edges[3, 1] == {(4, 1): 20.0}
    assert made._edges[3, 0] == {(4, 1): 30.0}


@given(st.data())
def test_a_block_and_its_clones_run_as_often_as_the_block_did(data: st.DataObject) -> None:
    """So do edges, to one or from it; each part is within one of what it was before rounding."""
    pairs = st.tuples(st.integers(0, 6), st.integers(0, 6))
    given_edges = data.draw(st.dictionaries(pairs, st.integers(1, 999), min_size=1))
    made = function({edge: float(count) for edge, count in given_edges.items()})
    before = {row: round(count) for (row, _), count in made._count.items()}
    leads = {row: [to for source, to in given_edges if source == row] for row in before}
    paths = []
    for source, to in data.draw(st.lists(st.sampled_from(sorted(given_edges)), unique=True)):
        rows = [to]
        while len(rows) < 4 and (on := sorted(set(leads[rows[-1]]) - {source, *rows})):
            rows.append(data.draw(st.sampled_from(on)))
        odds = st.floats(0, 1)
        shares = tuple({after: data.draw(odds) for after in leads[row]} for row in rows)
        paths += [path(source, *rows, shares=shares)] if source not in rows else []
    cloned = [each for each in module._ordered(paths) if made._clone(each)]
    count, edges = made._rounded()
    total, led = Counter[int](), Counter[tuple[int, int]]()
    for (row, copy), times in count.items():
        total[row] += times
        assert abs(times - made._count[row, copy]) < 1
        for (to, _), passed in edges[row, copy].items():
            led[row, to] += passed
    assert (total, led) == (before, given_edges)
    assert len(count) == len(before) + sum(len(each.cloned) for each in cloned)


def test_the_largest_remainders_go_up() -> None:
    parts = {("a", 0): 1.4, ("a", 1): 0.9, ("a", 2): 0.7, ("b", 0): 2.0}
    whole = {("a", 0): 1, ("a", 1): 1, ("a", 2): 1, ("b", 0): 2}
    assert module._whole(parts, lambda key: key[0]) == whole


def test_clones_stay_only_where_fewer_branches_are_taken() -> None:
    gains = function(DIAMOND).with_clones([path(2, 3, shares=({4: 0.0},))])
    assert gains is not None
    assert gains.paths == ((2, 3),)
    assert sorted(gains.order) == [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (4, 0)]
    assert gains.order[0] == (0, 0)
    assert function({(0, 1): 9.0, (1, 2): 9.0}).with_clones([path(1, 2)]) is None


START, SIZE = 0x1000, 16
COLD_SIZE = 10_000


def cloned(
    edges: dict[tuple[int, int], int],
    *,
    order: list[int],
    metadata: dict[int, int] | None = None,
    calls: tuple[int, ...] = (),
    runs: tuple[tuple[int, int, int, int], ...] = (),
) -> tuple[tuple[int, ...], ...]:
    """Paths that are cloned of a function whose blocks stand in this order, by their numbers.

    A large function beside it makes room. `calls` are blocks with a call, and `runs` are jumps from
    a block to another one, from where execution ran straight on to the last, and how often.
    """
    number = len(order)
    place = [START + SIZE * row for row in range(number)]
    kinds = np.zeros(number + 1, np.uint8)
    for row, value in (metadata or {}).items():
        kinds[row] = value
    blocks = BlockMap(
        np.array([0] * number + [1]), np.arange(number + 1),
        image_array([*place, START + SIZE * number]),
        np.array([SIZE] * number + [COLD_SIZE], np.uint64), kinds,
        np.zeros(number + 1, np.uint64), image_array([START, START + SIZE * number]), "a.out",
    )  # fmt: skip
    rows = sorted(edges)
    left = np.bincount([a for a, _ in rows], [edges[row] for row in rows], number)
    came = np.bincount([b for _, b in rows], [edges[row] for row in rows], number)
    count = np.maximum(left, came).astype(np.uint64)
    found = BlockFlow(
        np.append(count, np.uint64(0)),
        BlockEdges(
            np.array([a for a, _ in rows]), np.array([b for _, b in rows]),
            np.array([edges[row] for row in rows], np.uint64),
        ),
        BlockFit(1, 1, 1),
    )  # fmt: skip
    layout = Layout(np.array([0]), np.array([0, number]), np.array(order), np.array([False]))
    known = FROM | TO | END | BRANCH
    traces = [(place[a] + 8, place[b], place[c] + 8, known, n, 0, 0) for a, b, c, n in sorted(runs)]
    columns = np.array(traces, np.uint64).reshape(-1, 7).T
    counts = BranchCounts(
        *map(placed_addresses, columns[:3]), columns[3].astype(np.uint8), *columns[4:]
    )
    flow: Any = SimpleNamespace(
        counts=counts,
        branches=SimpleNamespace(count=np.array([1000], np.uint64)),
        instructions=SimpleNamespace(
            address=placed_addresses(np.array([place[row] for row in calls], np.uint64)),
            kind=np.full(len(calls), Kind.CALL, np.uint8),
        ),
    )
    made = clone_paths(flow, blocks, found, layout)
    return made[0].paths if made else ()


MERGE = {(0, 1): 600, (0, 2): 400, (1, 3): 600, (2, 3): 400}
"""Block 3 ends the function, behind 1 or 2."""


def test_the_end_of_a_function_is_cloned_for_what_jumps_there() -> None:
    assert cloned(MERGE, order=[0, 1, 3, 2]) == ((2, 3),)
    assert cloned(MERGE, order=[0, 1, 2, 3]) == ((1, 3),)


@pytest.mark.parametrize(
    "what",
    [
        {"metadata": {3: LANDING_PAD}},
        {"metadata": {1: LANDING_PAD}, "calls": (3,)},
        {"metadata": {2: INDIRECT_BRANCH}},
    ],
    ids=["landing pad", "a call that may throw", "behind an indirect branch"],
)
def test_what_clang_can_not_clone_stays(what: dict[str, Any]) -> None:
    assert cloned(MERGE, order=[0, 1, 3, 2], **what) == ()


def test_calls_are_cloned_where_nothing_is_caught() -> None:
    assert cloned(MERGE, order=[0, 1, 3, 2], calls=(3,)) == ((2, 3),)


def test_what_was_seldom_seen_stays() -> None:
    few = {edge: count // 50 for edge, count in MERGE.items()}
    assert cloned(few, order=[0, 1, 3, 2]) == ()


ONWARD = {**MERGE, (3, 4): 500, (3, 5): 500}
"""Behind block 3, control goes on to 4 or 5, which end the function."""


@pytest.mark.parametrize(
    ("last", "paths"), [(3, ((2, 3, 5),)), (4, ((2, 3, 4),))], ids=["never", "always"]
)
def test_a_path_goes_on_as_the_runs_behind_its_jump_did(
    last: int, paths: tuple[tuple[int, ...], ...]
) -> None:
    """Edges alone would have half of them go each way."""
    runs = ((2, 3, last, 400),)
    assert cloned(ONWARD, order=[0, 1, 3, 4, 5, 2], runs=runs) == paths


def test_runs_do_not_tell_where_a_block_with_a_call_goes() -> None:
    """There they end, and it never seemed to go on to the next block."""
    order, runs = [0, 1, 3, 4, 5, 2], ((2, 3, 3, 400),)
    edges = {**ONWARD, (3, 4): 600, (3, 5): 400}
    assert cloned(edges, order=order, runs=runs) == ((2, 3, 5),)
    by_edges = cloned(edges, order=order)
    assert by_edges != ((2, 3, 5),)
    assert cloned(edges, order=order, runs=runs, calls=(3,)) == by_edges


def test_a_path_ends_with_an_indirect_branch() -> None:
    ends = {3: INDIRECT_BRANCH}
    assert cloned(ONWARD, order=[0, 1, 3, 4, 5, 2], metadata=ends) in (((2, 3),), ())


@dataclass(frozen=True, slots=True)
class Built:
    """A program with a block map, what compiles it, and what was recorded of it."""

    compile: tuple[object, ...]
    program: Path
    recording: Path


Build = Callable[..., Built]


@pytest.fixture
def build(tmp_path: Path, tool: Tool, run: Run) -> Build:
    def made(compiler: str, *flags: object) -> Built:
        source = tmp_path / ("a.c" if compiler == "clang-22" else "a.cc")
        source.write_text(MERGING + COLD)
        compile_it = (tool(compiler), *COMPILED, source)
        mapped, recording = tmp_path / "mapped", tmp_path / "perf.data"
        run(*compile_it, *LINKED, *flags, "-fbasic-block-address-map", "-o", mapped)
        run(*lbr2pgo("record", "--emulate", "-c", 997, "-o", recording, "--", mapped, 20000))
        return Built(compile_it, mapped, recording)

    return made


@pytest.mark.parametrize("compiler", ["clang-22", "clang++-22"])
def test_clang_clones_the_paths_and_takes_fewer_branches(
    tmp_path: Path, run: Run, build: Build, compiler: str
) -> None:
    built, made = build(compiler), []
    for name, asked in (("plain", ()), ("cloned", ("--propeller-clone-paths",))):
        clusters, order, out = (tmp_path / f"{name}{end}" for end in (".cc", ".ld", ""))
        to = ("--propeller-cc", clusters, "--propeller-ld", order, *asked)
        run(*lbr2pgo("convert", built.recording, "--binary", built.program, *to))
        assert ("\np " in clusters.read_text()) == (name == "cloned")
        links = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={order}"
        use = f"-fbasic-block-sections=list={clusters}"
        done = run(*built.compile, *LINKED, use, links, "-o", out)
        assert done.stderr == ""  # it warns of paths that are none, and ends with 0
        made.append(out)
    said = run(*lbr2pgo("measure", "--runs", 0, "--format", "json", *made, "--", 3000)).stdout
    answer = json.loads(said)
    assert answer["differing_outputs"] == []
    cloned = answer["programs"][1]
    assert cloned["ratios"]["taken"] < 0.98
    sizes = [each["size"]["text"] for each in answer["programs"]]
    assert sizes[0] < sizes[1] < sizes[0] * (1 + MOST_GROWTH)
    checked = run(*lbr2pgo("check", clusters, "--binary", built.program), check=False)
    assert "stale" in checked.stdout


def lines_of(clusters: Path, function: str) -> dict[str, str]:
    """Lines of one function, by their first letters; the last of each letter."""
    own = clusters.read_text().split(f"\nf {function}\n")[1].split("\nf ")[0]
    return {line[0]: line for line in own.splitlines()}


def test_clang_has_the_counts_of_clones(tmp_path: Path, tool: Tool, run: Run, build: Build) -> None:
    """It writes what it read of `g` lines into the map, if asked to; of edges, by block alone."""
    built = build("clang-22", "-mllvm", "-emit-bb-hash")
    options = ("--propeller-clone-paths", "--propeller-counts")
    asked = {"clones": options[:1], "counts": options[1:], "both": options}
    for name, words in asked.items():
        to = ("--propeller-cc", tmp_path / name, *words)
        run(*lbr2pgo("convert", built.recording, "--binary", built.program, *to))
        use = f"-fbasic-block-sections=list={tmp_path / name}"
        assert run(*built.compile, use, "-c", "-o", tmp_path / f"{name}.o").stderr == ""
    objects = {name: (tmp_path / f"{name}.o").read_bytes() for name in asked}
    assert objects["both"] == objects["clones"] != objects["counts"]

    assert lines_of(tmp_path / "both", "main") == lines_of(tmp_path / "counts", "main")
    mixed, before = (lines_of(tmp_path / name, "mixed") for name in ("both", "counts"))
    assert "." not in mixed["h"]
    assert sorted(mixed["h"].split()) == sorted(before["h"].split())
    nodes, plain = (graph_of(each["g"]) for each in (mixed, before))
    assert list(nodes) == mixed["c"].split()[1:]
    assert any("." in to for leads in nodes.values() for to in leads)
    assert added_up(nodes) == added_up(plain)

    mapped = tmp_path / "laid"
    asked_map = ("-mllvm", "-pgo-analysis-map=all", "-mllvm", TELLING)
    run(*built.compile, *LINKED, use, "-fbasic-block-address-map", *asked_map, "-o", mapped)
    said = run(tool("llvm-readobj-22"), "--bb-addr-map", "--elf-output-style=JSON", mapped).stdout
    maps = (each["Function"] for each in json.loads(said)[0]["BBAddrMap"])
    read = next(each for each in maps if each["Name"] == "mixed")["PGO analyses"]["PGO BB entries"]
    told = [leads[node] for node, leads in nodes.items()]
    assert [each["PostLink Frequency"] for each in read[: len(told)]] == told
    for (node, leads), each in zip(nodes.items(), read, strict=False):
        led = {to["ID"]: to["PostLink Probability"] for to in each["Successors"]}
        own = {int(to.split(".")[0]): n for to, n in leads.items() if to != node}
        assert {to: n for to, n in led.items() if n} == own, node


TELLING = "-pgo-analysis-map-emit-bb-sections-cfg"


def graph_of(line: str) -> dict[str, dict[str, int]]:
    """What a `g` line says of each block: how often it ran, by its own number, and led on."""
    nodes = (dict(pair.split(":") for pair in node.split(",")) for node in line.split()[1:])
    return {next(iter(node)): {to: int(n) for to, n in node.items()} for node in nodes}


def added_up(nodes: dict[str, dict[str, int]]) -> Counter[tuple[str, str]]:
    """The same without clones, which count with their blocks."""
    total: Counter[tuple[str, str]] = Counter()
    for node, counts in nodes.items():
        for to, times in counts.items():
            total[node.split(".")[0], to.split(".")[0]] += times
    return total


def test_clones_go_with_version_1_alone() -> None:
    with pytest.raises(InputError, match=r"version 0 .* holds no clones") as refused:
        PropellerOutput(Path("x"), clone_paths=True, version="0")
    assert "--propeller-clone-paths" in (refused.value.cure or "")
