"""Contexts that are left when it is decided what to inline, judged by llvm-profgen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders.call_graphs import components
from builders.context_profiles import (
    HYBRID,
    LINES,
    PREINLINED,
    as_text,
    inlined,
    line_contexts,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.context_trees import call_hashes
from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts
from lbr2pgo.profiles.llvm.contexts.preinliner import top_down
from lbr2pgo.profiles.llvm.contexts.sizes import _first_children


@pytest.mark.parametrize("name", HYBRID)
def test_recorded_programs_keep_the_contexts_that_llvm_profgen_keeps(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES, *PREINLINED)
    assert as_text(inlined(line_contexts(binary, recording))) == expected


# 8: a call that nothing follows; 20: equal candidates.
@pytest.mark.parametrize("seed", [*range(6), 8, 20])
def test_random_programs_keep_the_contexts_that_llvm_profgen_keeps(
    seed: int, walk: Walk, walked_contexts: Callable[[int], LineContexts], tool: Tool,
    tmp_path: Path,
) -> None:  # fmt: skip
    expected = profgen_of_contexts(tool, tmp_path, *walk(seed)[::-1], *LINES, *PREINLINED)
    assert as_text(inlined(walked_contexts(seed))) == expected


def sums_by_name(profile: ContextProfile) -> dict[str, list[int]]:
    sums: dict[str, list[int]] = {}
    c = profile.table.contexts
    for name, *counts in zip(c.name.tolist(), c.total.tolist(), c.head.tolist(), strict=True):
        of_name = sums.setdefault(profile.table.names[name], [0, 0])
        of_name[:] = [a + b for a, b in zip(of_name, counts, strict=True)]
    return {name: counts for name, counts in sums.items() if any(counts)}


@pytest.mark.parametrize("seed", range(6))
def test_no_sample_is_lost(seed: int, walk: Walk) -> None:
    contexts = line_contexts(*walk(seed), as_llvm=False)
    left = inlined(contexts, as_llvm=False)
    assert sums_by_name(left) == sums_by_name(contexts.profile())
    is_inlined = left.attributes & SHOULD_BE_INLINED != 0
    assert (is_inlined | (left.table.contexts.parent < 0))[left.has_samples].all()


def test_random_programs_have_calls_to_inline(
    walked_contexts: Callable[[int], LineContexts],
) -> None:
    inlined_calls = [as_text(inlined(walked_contexts(s))).count("Attributes: 2") for s in range(6)]
    assert sum(inlined_calls) > 20


SIZE = 6
functions = st.integers(0, SIZE - 1)
calls = st.lists(st.tuples(functions, functions, st.integers(1, 5)), max_size=12)


def order(rows: list[tuple[int, int, int]], rank: list[int], cold: int = 0) -> list[int]:
    table = np.array(rows, np.int64).reshape(-1, 3)
    found = top_down(
        table[:, 0], table[:, 1], table[:, 2].astype(np.uint64), np.array(rank, np.int64), cold
    )
    return found.tolist()


@given(calls, st.permutations(range(SIZE)))
def test_each_function_stands_once_and_callers_before_callees(
    rows: list[tuple[int, int, int]], rank: list[int]
) -> None:
    found = order(rows, rank)
    assert sorted(found) == list(range(SIZE))
    graph = [[to for from_, to, _ in rows if from_ == node] for node in range(SIZE)]
    circle_of = {node: i for i, part in enumerate(components(graph)) for node in part}
    for from_, to, _ in rows:
        if circle_of[from_] != circle_of[to]:
            assert found.index(from_) < found.index(to)


@given(calls)
def test_a_circle_stands_together(rows: list[tuple[int, int, int]]) -> None:
    found = order(rows, list(range(SIZE)))
    graph = [[to for from_, to, _ in rows if from_ == node] for node in range(SIZE)]
    for part in components(graph):
        places = sorted(found.index(node) for node in part)
        assert all(after == before + 1 for before, after in pairwise(places))


def test_in_a_circle_the_heaviest_call_decides() -> None:
    assert order([(0, 1, 9), (1, 0, 1)], [0, 1]) == [0, 1]
    assert order([(0, 1, 1), (1, 0, 9)], [0, 1]) == [1, 0]


def test_cold_calls_do_not_count() -> None:
    assert order([(1, 0, 3)], [0, 1]) == [1, 0]
    without = order([], [0, 1])
    assert order([(1, 0, 3)], [0, 1], cold=3) == without
    assert order([(1, 0, 2), (1, 0, 2)], [0, 1], cold=3) == [1, 0]  # they add up first


def test_the_size_of_a_function_is_that_in_the_context_which_llvm_has_first() -> None:
    """Where it is known in several others only: of each node the child of the least hash."""
    nodes = [(0, 0, 0), (1, 5, 1), (1, 6, 2), (1, 7, 1), (2, 3, 2), (3, 3, 1), (3, 9, 0)]
    rows, guids = np.array([(0, 0, 0), *nodes], np.uint64), np.array([7, 1 << 63, 9], np.uint64)
    hashes = call_hashes(rows[1:, 2].astype(np.int64), rows[1:, 1], guids).tolist()
    children: dict[int, list[tuple[int, int]]] = {}
    for number, (row, each) in enumerate(zip(nodes, hashes, strict=True), 1):
        children.setdefault(row[0], []).append((each, number))
    expected = [min(children[node])[1] if node in children else -1 for node in range(len(rows))]
    assert _first_children(rows, guids).tolist() == expected
