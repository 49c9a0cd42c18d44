from __future__ import annotations

import numpy as np
from builders.sources import Sample
from builders.stack_tables import kinds, samples_of, stacks, traces
from hypothesis import given, settings

from lbr2pgo.evidence._duplicates import list_duplicates
from lbr2pgo.native.walk import Reason, StackKind


def duplicates(samples: list[Sample], kind: StackKind = StackKind.CONSECUTIVE) -> list[int]:
    found = np.zeros(len(samples), np.int64)
    return found[: list_duplicates(samples_of(samples, kind).stacks, found)].tolist()


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_they_are_in_the_samples_in_which_counting_leaves_one_out(rows, kind: StackKind) -> None:
    samples = [Sample(stack) for stack in rows]
    left_out = [int(traces([sample], kind).tallies[Reason.DUPLICATE]) for sample in samples]
    assert duplicates(samples, kind) == np.flatnonzero(left_out).tolist()


def test_a_call_that_repeats_in_a_filtered_recording_is_none() -> None:
    samples = [Sample([(0x1010, 0x1020), (0x1010, 0x1020)])]
    assert traces(samples, StackKind.SELECTED).counts()[0].count.tolist() == [2]
    assert duplicates(samples, StackKind.SELECTED) == []
    assert traces(samples).counts()[0].count.tolist() == [1]
    assert duplicates(samples) == [0]
