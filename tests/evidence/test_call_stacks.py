from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders.evidence import gather_sources, program, source
from builders.sources import MemorySource, Sample
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.analyses.call_stacks import folded
from lbr2pgo.evidence import call_stacks as module
from lbr2pgo.evidence.call_stacks import (
    CALL_STACK_BIT,
    CALL_STACKS,
    CallStackCollector,
    CallStacks,
    is_call_stack,
)
from lbr2pgo.model.branch_stacks import CallChains
from lbr2pgo.native.walk import StackKind
from lbr2pgo.reports.gather import Gathered
from lbr2pgo.sources.base import Addresses
from lbr2pgo.support.addresses import placed_addresses

CALL_STACK = CALL_STACK_BIT | 1
IN_G = Sample([(0x1000, 0x1040)], ip=0x1040, weight=3)
IN_H = Sample([(0x1020, 0x1050), (0x1018, 0x1020)], ip=0x1051)
CHAIN = Sample([(0x1016, 0x1005)], chain=(0x1051, 0x7FFF0000, 0x7FFF1000, 0x1022, 0x1005))

Frame = tuple[int, int]
"""An address and -1, or 0 and the number of another file."""


def gathered(*samples: Sample, filters: int | None = CALL_STACK) -> Gathered:
    event = 0 if filters is not None else -1
    made = source(*(replace(each, event=event) for each in samples), filters=filters)
    return gather_sources([made], program(), also=(CALL_STACKS,))


def called(*samples: Sample, filters: int | None = CALL_STACK) -> CallStacks:
    told = gathered(*samples, filters=filters).evidence.found(CALL_STACKS)
    assert told is not None
    return told


def addresses(told: CallStacks) -> dict[tuple[int, ...], int]:
    return {
        tuple(told.address[list(stack)].tolist()): count
        for stack, count in zip(told.stacks, told.count, strict=True)
    }


def test_frames_are_the_calls_and_what_was_interrupted() -> None:
    found = addresses(called(IN_G, IN_H))
    assert found == {(0x1000, 0x1040): 3, (0x1018, 0x1020, 0x1051): 1}


def test_the_caller_of_a_chain_is_the_call_before_its_return_address() -> None:
    assert addresses(called(CHAIN, filters=None)) == {(0x1004, 0x1021, 0, 0x1051): 1}


@pytest.mark.parametrize(
    ("sample", "frames"),
    [
        (replace(IN_G, ip=0x1041), (0x1000, 0x1041)),
        (replace(IN_G, ip=0x1051), (0x1000, 0x1040, 0x1051)),
        (replace(IN_G, ip=0), (0x1000, 0x1040)),
        (replace(IN_G, ip=1 << 63), (0x1000, 0x1040, 0)),
    ],
    ids=["running", "behind a tail call", "not known", "in the kernel"],
)
def test_where_the_running_function_began_is_a_frame_if_another_one_was_interrupted(
    sample: Sample, frames: tuple[int, ...]
) -> None:
    assert list(addresses(called(sample))) == [frames]


def test_neighbours_outside_are_one_frame() -> None:
    outside = [(0x7FFF0000, 0x7FFF1000), (0x7FFF2000, 0x7FFF0000), (0x1000, 0x7FFF2000)]
    told = called(Sample(outside), IN_G)
    assert addresses(told) == {(0x1000, 0): 1, (0x1000, 0x1040): 3}
    assert told.is_inside.tolist() == [address != 0 for address in told.address.tolist()]


def test_a_batch_may_hold_no_call_chain() -> None:
    plain = Sample([(0x1016, 0x1005)])
    made = MemorySource([CHAIN, plain], addresses=Addresses.IMAGE, batch_size=1)
    told = gather_sources([made], program(), also=(CALL_STACKS,)).evidence.found(CALL_STACKS)
    assert told is not None
    assert told.count == (1,)


def test_functions_are_those_that_hold_the_frames() -> None:
    found = gathered(IN_G, IN_H, IN_H)
    assert folded(found.evidence) == [("main;dispatch;h", 2), ("main;g", 3)]
    found = gathered(CHAIN, filters=None)
    assert folded(found.evidence) == [("main;dispatch;[outside];h", 1)]


def test_other_recordings_have_none() -> None:
    found = gathered(Sample([(0x1016, 0x1005)]), filters=None)
    assert found.evidence.found(CALL_STACKS) is None


def collector(*filters: int | None) -> CallStackCollector:
    events = [SimpleNamespace(branch_sample_type=each) for each in filters]
    program = SimpleNamespace(regions=None)
    known: Any = SimpleNamespace(spaces=None, program=program, events=events, outside=None)
    return CallStackCollector(known)


frames = st.tuples(st.integers(1, 4), st.just(-1)) | st.tuples(st.just(0), st.integers(0, 2))
stacks = st.lists(st.lists(frames, max_size=5), max_size=6)
"""Innermost frames first."""


def add(found: CallStackCollector, given: list[list[Frame]]) -> None:
    """As `add` does, once frames are known."""
    image, file = (np.array([frame[i] for s in given for frame in s], np.int64) for i in (0, 1))
    sizes = np.array([len(each) for each in given], np.int64)
    nodes = found._number(placed_addresses(image.astype(np.uint64)), file, sizes)
    np.add.at(found._count, nodes[nodes >= 0], np.uint64(1))


def frames_of(found: CallStackCollector) -> list[tuple[tuple[Frame, ...], int]]:
    told = found.result()
    assert told is not None
    rows = list(zip(told.address.tolist(), told.file.tolist(), strict=True))
    stacks = [tuple(rows[frame] for frame in stack) for stack in told.stacks]
    return list(zip(stacks, told.count, strict=True))


@given(stacks, stacks)
def test_stacks_are_counted_from_the_outermost_caller_on(
    one: list[list[Frame]], other: list[list[Frame]]
) -> None:
    found, beside = collector(CALL_STACK_BIT), collector(0)
    add(found, one)
    add(beside, other)
    beside.merge(found)
    expected = Counter(tuple(reversed(stack)) for stack in [*one, *other] if stack)
    assert frames_of(beside) == sorted(expected.items())


@given(stacks)
def test_neighbours_in_one_file_are_told_from_callers_in_others(given: list[list[Frame]]) -> None:
    file = np.array([frame[1] for stack in given for frame in stack], np.int64)
    found = module._differs_from_caller(file, np.array([len(s) for s in given], np.int64))
    expected = [
        i + 1 == len(stack) or frame[1] < 0 or frame != stack[i + 1]
        for stack in given
        for i, frame in enumerate(stack)
    ]
    assert found.tolist() == expected


def test_samples_have_open_calls_or_a_chain_or_none() -> None:
    """The last two are of other programs, or hold neither."""
    kinds = [StackKind.OPEN_CALLS, *[StackKind.CONSECUTIVE] * 3, StackKind.OPEN_CALLS]
    given: Any = SimpleNamespace(kinds=np.array(kinds), spaces=np.array([1, 1, 0, 0, -1]))
    chains = CallChains(np.zeros(4, np.uint64), np.array([0, 1, 2, 3, 3, 4]))
    assert module._with_open_calls(given).tolist() == [0]
    assert module._with_chains(given, chains).tolist() == [1, 2]


def test_nothing_is_told_where_nothing_recorded_call_stacks() -> None:
    assert collector(0, None).result() is None
    assert frames_of(collector(0, CALL_STACK_BIT)) == []


@pytest.mark.parametrize(
    ("filters", "holds"), [(None, False), (0, False), (8, False), (CALL_STACK_BIT | 1, True)]
)
def test_an_event_says_whether_its_stacks_are_call_stacks(filters: int | None, holds: bool) -> None:
    assert is_call_stack(filters) is holds
