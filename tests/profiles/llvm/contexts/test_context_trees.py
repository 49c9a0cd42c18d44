from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.context_counts import Callers
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_trees import (
    breadth_first,
    call_hashes,
    cut_at,
    levels,
    outermost,
)
from lbr2pgo.support.addresses import image_array

PARENTS = st.lists(st.integers(0, 100)).map(
    lambda drawn: np.array([drawn[i] % (i + 1) - 1 for i in range(len(drawn))], np.int64)
)


@given(PARENTS)
def test_each_level_has_the_children_of_the_one_before(parent: np.ndarray) -> None:
    above = {-1}
    seen: list[int] = []
    for level in levels(parent):
        assert set(parent[level].tolist()) <= above
        above = set(level.tolist())
        seen += level.tolist()
    assert sorted(seen) == list(range(len(parent)))


@given(PARENTS, st.data())
def test_unknown_calls_are_told_by_the_innermost_and_from_the_outermost(
    parent: np.ndarray, data: st.DataObject
) -> None:
    below_root = np.append(-1, np.maximum(parent, 0)[: len(parent)])
    callers = Callers(below_root, image_array(range(len(below_root))))
    is_unknown = data.draw(st.lists(st.booleans(), min_size=len(callers), max_size=len(callers)))
    innermost, all_around = [0], [True]
    for node, above in enumerate(below_root.tolist()[1:], 1):
        innermost.append(node if is_unknown[node] else innermost[above])
        all_around.append(is_unknown[node] and all_around[above])
    assert cut_at(callers, np.array(is_unknown, np.bool_)).tolist() == innermost
    assert outermost(callers, np.array(is_unknown, np.bool_)).tolist() == all_around


@given(PARENTS, st.data())
def test_callers_come_first_and_callees_by_their_key(
    parent: np.ndarray, data: st.DataObject
) -> None:
    key = np.array(data.draw(st.permutations(range(len(parent)))), np.uint64)
    expected: list[int] = []
    waiting = deque([-1])
    while waiting:
        node = waiting.popleft()
        children = sorted(np.flatnonzero(parent == node).tolist(), key=key.__getitem__)
        expected += children
        waiting += children
    assert breadth_first(parent, key).tolist() == expected


@given(
    st.lists(st.tuples(*[st.integers(0, 2**16 - 1)] * 2), min_size=1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=1),
)
def test_callees_are_ordered_by_discriminator_then_line(
    places: list[tuple[int, int]], guids: list[int]
) -> None:
    """LLVM 22: SampleProf.h, getHashCode of LineLocation and SampleContextFrame."""
    line, discriminator = np.array(places, np.int64).T
    found = call_hashes(
        np.zeros(len(places), np.int64), location_of(line, discriminator), np.array(guids, "u8")
    )
    expected = [(guids[0] + (d << 32 | at) * 33) % 2**64 for at, d in places]
    assert found.tolist() == expected
