from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts.tail_calls import MOST_JUMPS, TailCalls
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions

SIZE = 0x100
"""Function `i` begins at `(i + 1) * SIZE`."""


def code(kinds: dict[int, Kind]) -> InstructionTable:
    """Instructions of these kinds, a byte each."""
    address = np.array(sorted(kinds), np.uint64)
    kind = np.array([kinds[a] for a in sorted(kinds)], np.uint8)
    size = len(address)
    return InstructionTable(
        address, np.ones(size, np.uint8), kind, np.zeros(size, np.uint64),
        np.zeros(size, np.bool_),
    )  # fmt: skip


def tail_calls(functions: int, branches: list[tuple[int, int, Kind]]) -> TailCalls:
    """Branches from addresses to functions."""
    starts = (np.arange(functions, dtype=np.uint64) + np.uint64(1)) * np.uint64(SIZE)
    known = DwarfFunctions(
        starts, starts + np.uint64(SIZE), np.arange(functions, dtype=np.int32),
        tuple(f"f{i}" for i in range(functions)),
    )  # fmt: skip
    source = np.array([source for source, _, _ in branches], np.uint64)
    target = np.array([start(target) for _, target, _ in branches], np.uint64)
    kinds = {source: kind for source, _, kind in branches}
    return TailCalls(source, target, known, code(kinds))


def start(function: int) -> int:
    return (function + 1) * SIZE


def test_the_jumps_on_the_only_way_are_what_is_missing() -> None:
    """f0 calls f1, which jumps to f2, which jumps to f3."""
    call, one, two = start(0) + 8, start(1) + 8, start(2) + 8
    found = tail_calls(4, [(call, 1, Kind.CALL), (one, 2, Kind.JUMP), (two, 3, Kind.INDIRECT_JUMP)])
    assert found.missing(call, 3) == (one, two)
    assert found.missing(call, 2) == (one,)
    assert found.missing(call, 1) == ()
    assert found.missing(one, 3) == (), "it makes no call"


def test_of_several_ways_none_is_taken() -> None:
    call, one, two = start(0) + 8, start(1) + 8, start(1) + 16
    ways = [(call, 1, Kind.CALL), (one, 2, Kind.JUMP), (two, 2, Kind.JUMP)]
    assert tail_calls(3, ways[:2]).missing(call, 2) == (one,)
    assert tail_calls(3, ways).missing(call, 2) == ()


def test_a_function_that_the_call_reaches_by_itself_misses_nothing() -> None:
    call, one = start(0) + 8, start(1) + 8
    ways = [(call, 1, Kind.INDIRECT_CALL), (call, 2, Kind.INDIRECT_CALL), (one, 2, Kind.JUMP)]
    assert tail_calls(3, ways).missing(call, 2) == ()


def test_jumps_within_a_function_and_conditional_ones_are_no_tail_calls() -> None:
    call, one = start(0) + 8, start(1) + 8
    for target, kind in ((1, Kind.JUMP), (2, Kind.COND)):
        found = tail_calls(3, [(call, 1, Kind.CALL), (one, target, kind)])
        assert found.missing(call, 2) == ()


def test_circles_end() -> None:
    call, one, two, back = start(0) + 8, start(1) + 8, start(2) + 8, start(2) + 16
    ways = [(call, 1, Kind.CALL), (one, 2, Kind.JUMP), (back, 1, Kind.JUMP), (two, 3, Kind.JUMP)]
    assert tail_calls(4, ways).missing(call, 3) == (one, two)


@pytest.mark.parametrize(("jumps", "is_found"), [(MOST_JUMPS - 1, True), (5000, False)])
def test_ways_may_be_long_but_not_without_end(jumps: int, is_found: bool) -> None:
    call = start(0) + 8
    ways = [(call, 1, Kind.CALL)]
    ways += [(start(i) + 8, i + 1, Kind.JUMP) for i in range(1, jumps + 1)]
    assert len(tail_calls(jumps + 2, ways).missing(call, jumps + 1)) == is_found * jumps


def test_gaps_are_those_of_each_pair() -> None:
    call, one, two = start(0) + 8, start(1) + 8, start(2) + 8
    known = tail_calls(4, [(call, 1, Kind.CALL), (one, 2, Kind.JUMP), (two, 3, Kind.JUMP)])
    gaps = known.gaps(np.full(5, call, np.uint64), np.array([1, 2, 3, -1, 0]))
    assert gaps.function.tolist() == [2, 3]
    assert gaps.offsets.tolist() == [0, 1, 3]
    assert gaps.jumps.tolist() == [one, one, two]


@given(st.sets(st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda e: e[0] < e[1])))
def test_the_only_way_in_a_graph_without_circles_is_found(edges: set[tuple[int, int]]) -> None:
    call = start(0) + 8
    jumps = {edge: start(edge[0]) + 8 * edge[1] for edge in edges}
    ways = [(call, 1, Kind.CALL), *((at, b, Kind.JUMP) for (_, b), at in jumps.items())]
    found, graph = tail_calls(7, ways), nx.DiGraph([(0, 1), *edges])
    for target in range(2, 7):
        paths = list(nx.all_simple_paths(graph, 1, target)) if target in graph else []
        expected = tuple(jumps[edge] for edge in zip(paths[0], paths[0][1:], strict=False)) if (
            len(paths) == 1) else ()  # fmt: skip
        assert found.missing(call, target) == expected
