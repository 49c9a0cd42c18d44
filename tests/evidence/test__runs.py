"""Fall-throughs and their cycles against the traces that counting makes of the same stacks."""

from __future__ import annotations

from collections import Counter

import numpy as np
from builders.sources import Sample
from builders.stack_tables import collected, kinds, samples_of, spaces, stacks, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence._runs import list_runs
from lbr2pgo.evidence.collector import Samples
from lbr2pgo.evidence.cycle_counts import CycleCollector
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import StackKind
from lbr2pgo.support.arrays import I64, U8, U64

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


def listed(samples: Samples) -> tuple[U64, U8, I64]:
    """Runs by their addresses, what is known of their prediction, and their samples."""
    room, known = len(samples.batch.entries), RowIds()
    number, sample = np.zeros((2, room), np.int64)
    prediction, led_to = np.zeros(room, np.uint8), np.full(len(samples.batch), -1)
    found = list_runs(samples.stacks, known, number, prediction, sample, led_to)
    return known.rows()[number[:found], :2], prediction[:found], sample[:found]


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_listed_runs_are_those_of_each_samples_traces(rows, kind: StackKind) -> None:
    given = samples_of([Sample(stack) for stack in rows], kind)
    runs, _, sample = listed(given)
    assert np.all(np.diff(sample) >= 0)
    for number, stack in enumerate(rows):
        own = [tuple(run) for run in runs[sample == number].tolist()]
        assert Counter(own) == runs_counted([Sample(stack)], kind)


def test_cycles_are_those_of_the_newer_entry_and_mispredictions_of_both() -> None:
    stack = [(0x1020, 0x1010, 7 << 4), (0x1030, 0x1010, 9 << 4 | 1), (0x1030, 0x1020, 0)]
    found = collected(CycleCollector(spaces()), [Sample(stack)])
    rows = zip(found.start.tolist(), found.end.tolist(), found.cycles.tolist(), strict=True)
    assert list(rows) == [(0x1010, 0x1020, 7), (0x1020, 0x1030, 9)]
    assert found.mispredicted.tolist() == [1, 1]
    assert found.prediction_unknown.tolist() == [0, 0]
    runs, prediction, _ = listed(samples_of([Sample(stack)]))
    assert runs.tolist() == [[0x1010, 0x1020], [0x1020, 0x1030]]
    assert prediction.tolist() == [0, 1]


def test_the_table_grows() -> None:
    samples = [
        Sample([(0x1000 + i, 0x1000, c << 4), (0x1001, 0x1000)])
        for i in range(0x200) for c in range(1, 300)
    ]  # fmt: skip
    assert len(collected(CycleCollector(spaces()), samples)) == len(samples)
