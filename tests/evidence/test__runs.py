"""Fall-throughs and their cycles against the traces that counting makes of the same stacks."""

from __future__ import annotations

from collections import Counter

import numpy as np
from builders.sources import Sample
from builders.stack_tables import collected, kinds, samples_of, spaces, stacks, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence._runs import list_runs
from lbr2pgo.evidence.cycle_counts import CycleCollector
from lbr2pgo.native.walk import StackKind

Run = tuple[int, int]


def runs_counted(samples: list[Sample], kind: StackKind) -> dict[Run, int]:
    runs = traces(samples, kind).counts()[0].runs()
    keys = zip(runs.start.tolist(), runs.end.tolist(), strict=True)
    return dict(zip(keys, runs.count.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(stacks, kinds, st.integers(1, 3))
def test_summed_over_cycles_runs_are_those_of_the_traces(rows, kind: StackKind, weight: int):
    samples = [Sample(stack, weight=weight) for stack in rows]
    found = collected(CycleCollector(spaces()), samples, kind)
    total: Counter[Run] = Counter()
    for start, end, count in zip(
        found.start.tolist(), found.end.tolist(), found.count.tolist(), strict=True
    ):
        total[start, end] += count
    assert dict(total) == runs_counted(samples, kind)


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_listed_runs_are_those_of_each_samples_traces(rows, kind: StackKind) -> None:
    given = samples_of([Sample(stack) for stack in rows], kind)
    room = len(given.batch.entries)
    runs, sample = np.zeros((room, 3), np.uint64), np.zeros(room, np.int64)
    found = list_runs(given.stacks, runs, sample)
    assert np.all(np.diff(sample[:found]) >= 0)
    for number, stack in enumerate(rows):
        own = [tuple(run) for run in runs[:found][sample[:found] == number, :2].tolist()]
        assert Counter(own) == runs_counted([Sample(stack)], kind)


def test_cycles_are_those_of_the_newer_entry_and_mispredictions_of_both() -> None:
    stack = [(0x1020, 0x1010, 7 << 4), (0x1030, 0x1010, 9 << 4 | 1), (0x1030, 0x1020, 0)]
    found = collected(CycleCollector(spaces()), [Sample(stack)])
    rows = zip(found.start.tolist(), found.end.tolist(), found.cycles.tolist(), strict=True)
    assert list(rows) == [(0x1010, 0x1020, 7), (0x1020, 0x1030, 9)]
    assert found.mispredicted.tolist() == [1, 1]
    assert found.prediction_unknown.tolist() == [0, 0]
    runs, sample = np.zeros((3, 3), np.uint64), np.zeros(3, np.int64)
    found = list_runs(samples_of([Sample(stack)]).stacks, runs, sample)
    assert runs[:found].tolist() == [[0x1010, 0x1020, 0], [0x1020, 0x1030, 1]]


def test_the_table_grows() -> None:
    samples = [
        Sample([(0x1000 + i, 0x1000, c << 4), (0x1001, 0x1000)])
        for i in range(0x200) for c in range(1, 300)
    ]  # fmt: skip
    assert len(collected(CycleCollector(spaces()), samples)) == len(samples)
