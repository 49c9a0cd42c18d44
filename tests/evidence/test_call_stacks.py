from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.evidence import call_stacks as module
from lbr2pgo.evidence.call_stacks import (
    CALL_STACK_BIT,
    OUTSIDE,
    CallStackCollector,
    StackCounts,
    is_call_stack,
    with_chains,
    with_open_calls,
)
from lbr2pgo.model.branch_stacks import CallChains
from lbr2pgo.native.walk import StackKind

Sample = tuple[int, list[tuple[int, int]]]
"""What was interrupted, `module._END` if unknown; callers and callees, newest first."""

regions = st.integers(OUTSIDE, 3)
samples = st.lists(
    st.tuples(
        regions | st.just(module._END), st.lists(st.tuples(regions, regions), max_size=4)
    ),
    max_size=5,
)  # fmt: skip


def plain_stack(sample: Sample) -> list[int]:
    """Innermost first, as perf shows it."""
    leaf, entries = sample
    running = [entries[0][1]] if entries else []
    interrupted = [] if leaf == module._END or [leaf] == running else [leaf]
    return [*interrupted, *running, *(caller for caller, _ in entries)]


@given(samples)
def test_frames_are_the_interrupted_the_running_and_their_callers(given: list[Sample]) -> None:
    entries = np.array([e for _, each in given for e in each], np.int64).reshape(-1, 2)
    length = np.array([len(each) for _, each in given], np.int64)
    leaf = np.array([leaf for leaf, _ in given], np.int64)
    found = module._frames(leaf, entries[:, 0], entries[:, 1], np.cumsum(length) - length, length)
    stacks = [[frame for frame in row if frame != module._END] for row in found.tolist()]
    assert stacks == [plain_stack(each) for each in given]


def collector(*filters: int | None) -> CallStackCollector:
    events = [SimpleNamespace(branch_sample_type=each) for each in filters]
    program = SimpleNamespace(regions=None)
    known: Any = SimpleNamespace(spaces=None, program=program, events=events, outside=None)
    return CallStackCollector(known)


def counted(*stacks: tuple[int, ...]) -> CallStackCollector:
    """One that saw these stacks, innermost first."""
    made = collector(CALL_STACK_BIT)
    made._counts = Counter(np.array(stack, np.int64).tobytes() for stack in stacks)
    return made


def test_stacks_begin_with_the_outermost_caller_and_are_sorted() -> None:
    assert counted((3, 1), (2, 1), (3, 1)).result() == StackCounts(((1, 2), (1, 3)), (1, 2))


def test_neighbours_outside_are_one_frame_and_add_up() -> None:
    seen = counted((2, OUTSIDE, OUTSIDE, 1), (2, OUTSIDE, 1), (OUTSIDE, 2))
    assert seen.result() == StackCounts(((1, OUTSIDE, 2), (2, OUTSIDE)), (2, 1))


def test_merging_adds_up_in_any_order() -> None:
    one, other = counted((1,), (2, 1)), counted((2, 1))
    one.merge(other)
    assert one.result() == StackCounts(((1,), (1, 2)), (1, 2))
    silent = collector(0)
    silent.merge(one)
    assert silent.result() == one.result()


def test_samples_have_open_calls_or_a_chain_or_none() -> None:
    """The last two are of other programs, or hold neither."""
    kinds = [StackKind.OPEN_CALLS, *[StackKind.CONSECUTIVE] * 3, StackKind.OPEN_CALLS]
    given: Any = SimpleNamespace(kinds=np.array(kinds), spaces=np.array([1, 1, 0, 0, -1]))
    chains = CallChains(np.zeros(4, np.uint64), np.array([0, 1, 2, 3, 3, 4]))
    assert with_open_calls(given).tolist() == [0]
    assert with_chains(given, chains).tolist() == [1, 2]


def test_nothing_is_told_where_nothing_recorded_call_stacks() -> None:
    assert collector(0, None).result() is None
    assert collector(0, CALL_STACK_BIT).result() == StackCounts((), ())


@pytest.mark.parametrize(
    ("filters", "holds"), [(None, False), (0, False), (8, False), (CALL_STACK_BIT | 1, True)]
)
def test_an_event_says_whether_its_stacks_are_call_stacks(filters: int | None, holds: bool) -> None:
    assert is_call_stack(filters) is holds
