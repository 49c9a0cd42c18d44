from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest
from builders.call_graphs import components
from builders.context_oracle import shortened, without_repeats
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._contexts import (
    INTO_UNKNOWN,
    MOST_WORK,
    NO_LIMIT,
    CallPaths,
    ContextKeys,
    compress,
    strong_components,
)

FRAMES = st.integers(1, 4).flatmap(lambda most: st.lists(st.integers(0, most), max_size=40))


@settings(max_examples=400, deadline=None)
@given(FRAMES, st.sampled_from([NO_LIMIT, 0, 1, 2, 5]))
def test_repeats_are_dropped_as_plain_search_drops_them(frames, longest: int) -> None:
    array = np.array(frames, np.int64)
    left = compress(array, longest)
    assert array[:left].tolist() == without_repeats(frames, longest)


@pytest.mark.parametrize(
    ("frames", "left"),
    [("aabb", "ab"), ("abcbc", "abc"), ("aaaa", "a"), ("abab", "ab"), ("abcabc", "abc"), ("", "")],
)
def test_recursion_shows_once(frames: str, left: str) -> None:
    array = np.frombuffer(frames.encode(), np.uint8).astype(np.int64)
    assert bytes(array[: compress(array, NO_LIMIT)].tolist()).decode() == left


def test_deep_contexts_are_searched_for_short_repeats_only() -> None:
    """Else one of this depth, which holds none, would take a minute."""
    frames = np.arange(1 << 16)
    started = time.monotonic()
    assert compress(frames, NO_LIMIT) == len(frames)
    assert time.monotonic() - started < 5
    period = MOST_WORK // len(frames) + 1
    repeating = np.tile(np.arange(period), len(frames) // period)
    assert compress(repeating.copy(), NO_LIMIT) == len(repeating)
    repeating = np.tile(np.arange(period - 1), len(frames) // period)
    assert compress(repeating, NO_LIMIT) == period - 1


@st.composite
def worlds(draw: st.DrawFn):
    """Inlined functions, call sites in them, and a trie of calls."""
    inlined = [(-1, 0, 0)]
    for number in range(draw(st.integers(0, 5))):
        inlined.append((draw(st.integers(-1, number)), number % 3, draw(st.integers(0, 2))))
    frames = [(function, location) for function in range(3) for location in range(3)]
    nodes = [(-1, -1, 0)]
    for number in range(draw(st.integers(0, 6))):
        caller = draw(st.integers(-1, len(inlined) - 1))
        nodes.append((draw(st.integers(0, number)), caller, draw(st.integers(0, 8))))
    wanted = draw(st.lists(st.tuples(st.integers(0, len(nodes) - 1),
                                     st.integers(0, len(inlined) - 1)), max_size=8))  # fmt: skip
    return inlined, frames, nodes, wanted


def outer_frames(inlined, at: int) -> list[int]:
    """Frames that an inlined function was inlined into, outermost first."""
    found: list[int] = []
    while inlined[at][0] >= 0:
        found.insert(0, inlined[at][1])
        at = inlined[at][0]
    return found


def expected(world, node: int, at: int, longest: int, depth: int, is_cut: bool):
    inlined, frames, nodes, _ = world
    path = outer_frames(inlined, at)
    while node > 0:
        parent, caller, frame = nodes[node]
        if caller < 0:
            if not is_cut:
                return None
            break
        path = [*outer_frames(inlined, caller), frame, *path]
        node = parent
    return [*(frames[f] for f in shortened(path, longest, depth)), inlined[at][2]]


def named(rows, context: int):
    """Frames of a context, outermost first, and its function."""
    caller, location, function = rows[context]
    found = [function]
    while caller:
        outer = rows[caller]
        found.insert(0, (outer[2], location))
        caller, location = outer[0], outer[1]
    return found


@settings(max_examples=300, deadline=None)
@given(worlds(), st.sampled_from([NO_LIMIT, 0, 1]), st.sampled_from([NO_LIMIT, 0, 2]),
       st.booleans())  # fmt: skip
def test_contexts_are_the_frames_on_the_way(world, longest: int, depth: int, is_cut: bool) -> None:
    inlined, frames, nodes, wanted = world
    keys = ContextKeys(
        np.array(nodes, np.int64), np.array(inlined, np.int64), np.array(frames, np.uint64),
        100, longest, depth, is_cut,
    )  # fmt: skip
    node, at = np.array(wanted, np.int64).reshape(-1, 2).T
    found = keys.number(np.ascontiguousarray(node), np.ascontiguousarray(at))
    rows = keys.contexts.rows().tolist()
    for (node_, at_), context in zip(wanted, found.tolist(), strict=True):
        path = expected(world, node_, at_, longest, depth, is_cut)
        assert (context == -1) if path is None else named(rows, context) == path


def test_outer_frames_beyond_the_limit_are_left_out() -> None:
    frames = np.array([[0, 1], [0, 2], [0, 3]], np.uint64)
    nodes = np.array([[-1, -1, 0], [0, 0, 0], [1, 0, 1], [2, 0, 2]], np.int64)
    keys = ContextKeys(nodes, np.array([[-1, 0, 0]]), frames, 2, NO_LIMIT, NO_LIMIT, True)
    context = keys.number(np.array([3]), np.array([0]))
    assert named(keys.contexts.rows().tolist(), int(context[0])) == [(0, 2), (0, 3), 0]


@st.composite
def call_worlds(draw: st.DrawFn):
    """Call stacks of sites, the functions of these, and what is missing between some."""
    nodes = [(-1, 0)]
    for number in range(draw(st.integers(0, 8))):
        nodes.append((draw(st.integers(0, number)), draw(st.integers(0, 3))))
    function_of = [draw(st.integers(0, 2)) for _ in range(5)]
    pairs = draw(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2))))
    gaps = {pair: draw(st.lists(st.integers(3, 4), min_size=1, max_size=2)) for pair in pairs}
    wanted = draw(st.lists(st.tuples(st.integers(0, len(nodes) - 1), st.integers(0, 2))))
    return nodes, function_of, gaps, wanted


@settings(max_examples=300, deadline=None)
@given(call_worlds(), st.sampled_from([NO_LIMIT, 0, 1]), st.sampled_from([NO_LIMIT, 0, 2]))
def test_call_stacks_are_compressed_before_what_is_missing_is_put_in(
    world, longest: int, depth: int
) -> None:
    nodes, function_of, gaps, wanted = world
    ids, offsets = RowIds(), np.cumsum([0, *(len(way) for way in gaps.values())])
    pairs = np.array(list(gaps), np.uint64).reshape(-1, 2)
    ids.number_rows(pairs[:, 0].copy(), pairs[:, 1].copy())
    paths = CallPaths(
        np.array(nodes, np.int64), np.array(function_of), ids, offsets.astype(np.int64),
        np.array([site for way in gaps.values() for site in way], np.int64), 100, longest, depth,
    )  # fmt: skip
    node, function = np.array(wanted, np.int64).reshape(-1, 2).T
    found = paths.number(np.ascontiguousarray(node), np.ascontiguousarray(function))
    rows = paths.nodes.rows().tolist()
    for (at, above), row in zip(wanted, found.tolist(), strict=True):
        sites: list[int] = []
        while at > 0:
            sites.insert(0, nodes[at][1])
            at = nodes[at][0]
        sites = shortened(sites, longest, depth)  # type: ignore[assignment]
        expected: list[int] = []
        for k, site in enumerate(sites):
            behind = function_of[sites[k + 1]] if k + 1 < len(sites) else above
            expected += [site, *gaps.get((site, behind), [])]
        path: list[int] = []
        while row:
            path.insert(0, rows[row][1])
            row = rows[row][0]
        assert path == expected


def test_callers_of_what_an_unknown_function_holds_are_unknown() -> None:
    """f1 was inlined into one of which nothing is known, and f2 into f1 at 3."""
    frames = np.array([[0, 7], [1, 3]], np.uint64)
    inlined = np.array([[-1, 0, 0], [INTO_UNKNOWN, 0, 1], [1, 1, 2]], np.int64)
    nodes = np.array([[-1, -1, 0], [0, 0, 0]], np.int64)
    keys = ContextKeys(nodes, inlined, frames, 100, NO_LIMIT, NO_LIMIT, True)
    found = keys.number(np.array([1, 1, 1]), np.array([0, 1, 2])).tolist()
    rows = keys.contexts.rows().tolist()
    assert [named(rows, row) for row in found] == [[(0, 7), 0], [1], [(1, 3), 2]]


Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 12))
    return [sorted(draw(st.sets(st.integers(0, size - 1), max_size=4))) for _ in range(size)]


def found(graph: Graph) -> list[list[int]]:
    offsets = np.cumsum([0, *map(len, graph)])
    targets = np.array([target for row in graph for target in row], np.int64)
    order, component = strong_components(offsets.astype(np.int64), targets)
    parts = np.split(order, np.flatnonzero(np.diff(component)) + 1)
    return [part.tolist() for part in parts if len(part)]


@given(graphs())
def test_components_come_in_llvms_order(graph: Graph) -> None:
    assert found(graph) == components(graph)


@given(graphs())
def test_components_are_those_of_the_graph(graph: Graph) -> None:
    edges = [(source, target) for source, row in enumerate(graph) for target in row]
    whole = nx.DiGraph(edges)
    whole.add_nodes_from(range(len(graph)))
    assert {frozenset(part) for part in found(graph)} == set(
        map(frozenset, nx.strongly_connected_components(whole))
    )


def test_a_graph_without_nodes_has_none() -> None:
    assert found([]) == []


def test_long_ways_take_no_more_stack_than_short_ones() -> None:
    size = 100_000
    assert found([[i + 1] for i in range(size - 1)] + [[]]) == [[i] for i in range(size)][::-1]
