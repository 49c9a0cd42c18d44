from __future__ import annotations

import time

import numpy as np
import pytest
from builders.context_oracle import shortened, without_repeats
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.context_keys import MOST_WORK, NO_LIMIT, ContextKeys, compress

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
