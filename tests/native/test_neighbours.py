"""Runs between neighbours, and rounds of loops, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from builders.sources import Sample, batch_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.evidence.cycle_counts import CycleTable
from lbr2pgo.evidence.duplicates import CopyTable
from lbr2pgo.model.branch_stacks import ABORT, NOT_TAKEN, SPEC_SHIFT, TYPE_SHIFT
from lbr2pgo.native import traces
from lbr2pgo.program.elf.layout import ImageLayout, Segment

LAYOUT = ImageLayout("a", None, "x86-64", False, (Segment(0x1000, 0, 0x4000, 0x4000, True),))
OUTSIDE = 0x9000
IRQ = 12 << TYPE_SHIFT

addresses = st.sampled_from([0, 0x1010, 0x1020, 0x1030, 0x3500, OUTSIDE])
words = st.sampled_from([0, 1, 2, ABORT, IRQ, NOT_TAKEN, 1 << SPEC_SHIFT])
cycles = st.sampled_from([0, 1, 2, 700, 65535])
entries = st.builds(lambda a, b, w, c: (a, b, w | c << 4), addresses, addresses, words, cycles)
stacks = st.lists(st.lists(entries, max_size=8), max_size=6)
modes = st.sampled_from([traces.CHAINS, traces.BRANCHES_ONLY, traces.NOTHING])


def table_of(table, samples: list[Sample], mode: int):
    n = len(samples)
    table.add(batch_of(samples), np.zeros(n, np.int64), np.full(n, mode, np.uint8))
    return table.counts()


def spaces() -> AddressSpaces:
    return AddressSpaces.fixed(LAYOUT)


@settings(max_examples=300, deadline=None)
@given(stacks, modes, st.integers(1, 3))
def test_runs_are_those_of_the_traces(rows, mode: int, weight: int) -> None:
    """Summed over cycles, the runs are what counting says, whatever the flags."""
    samples = [Sample(stack, weight=weight) for stack in rows]
    counts, _ = table_of(TraceTable(spaces()), samples, mode)
    found = table_of(CycleTable(spaces()), samples, mode)
    runs = counts.runs()
    keys = zip(runs.start.tolist(), runs.end.tolist(), strict=True)
    expected = dict(zip(keys, runs.count.tolist(), strict=True))
    total: Counter[tuple[int, int]] = Counter()
    for start, end, count in zip(
        found.start.tolist(), found.end.tolist(), found.count.tolist(), strict=True
    ):
        total[start, end] += count
    assert dict(total) == expected


@settings(max_examples=300, deadline=None)
@given(stacks, modes)
def test_copies_are_those_that_counting_leaves_out(rows, mode: int) -> None:
    samples = [Sample(stack) for stack in rows]
    counting = TraceTable(spaces())
    table_of(counting, samples, mode)
    copies = table_of(CopyTable(spaces()), samples, mode)
    assert int(copies.count.sum()) == int(counting.fates[traces.DUPLICATE])


def test_cycles_are_those_of_the_newer_entry() -> None:
    stack = [(0x1020, 0x1010, 7 << 4), (0x1030, 0x1010, 9 << 4), (0x1030, 0x1020, 0)]
    found = table_of(CycleTable(spaces()), [Sample(stack)], traces.CHAINS)
    rows = zip(found.start.tolist(), found.end.tolist(), found.cycles.tolist(), strict=True)
    assert list(rows) == [(0x1010, 0x1020, 7), (0x1020, 0x1030, 9)]


def test_the_table_grows() -> None:
    samples = [
        Sample([(0x1000 + i, 0x1000, c << 4), (0x1001, 0x1000)])
        for i in range(0x200) for c in range(1, 300)
    ]  # fmt: skip
    found = table_of(CycleTable(spaces()), samples, traces.CHAINS)
    assert len(found) == len(samples)


def rounds_of(stack: list[tuple[int, int, int]]) -> Counter[tuple[int, int, int]]:
    """Cycles between occurrences of backward branches, in words' terms."""

    def goes_on(entry: tuple[int, int, int]) -> bool:
        source, target, word = entry
        kind, spec = word >> TYPE_SHIFT & 15, word >> SPEC_SHIFT & 3
        return (
            (source, target) != (0, 0) and spec != 1 and not word & NOT_TAKEN
            and not word & ABORT and (kind != 12 or OUTSIDE == source == target)
        )  # fmt: skip

    found: Counter[tuple[int, int, int]] = Counter()
    is_copy = (
        len(stack) > 1 and stack[0][:2] == stack[1][:2]
        and (stack[0][1] > stack[0][0] or stack[0][0] - stack[0][1] >= 0x1000)
    )  # fmt: skip
    for i in range(1 if is_copy else 0, len(stack)):
        source, target, _ = stack[i]
        if not 0x1000 <= target <= source < 0x5000:
            continue
        times = []
        for j in range(i, len(stack)):
            if not goes_on(stack[j]):
                break
            if j > i and stack[j][:2] == (source, target):
                if 0 in times:
                    found[target, source, 0] += 1
                else:
                    found[target, source, min(sum(times), 65535)] += 1
                break
            times.append(stack[j][2] >> 4 & 0xFFFF)
    return found


@settings(max_examples=500, deadline=None)
@given(st.lists(entries, max_size=10))
def test_rounds_of_loops(stack) -> None:
    inside = [e for e in stack if not (e[2] >> TYPE_SHIFT & 15 == 12 and 0x9000 in e[:2])]
    found = table_of(CycleTable(spaces(), loops=True), [Sample(inside)], traces.CHAINS)
    rows = zip(found.start.tolist(), found.end.tolist(), found.cycles.tolist(), strict=True)
    assert Counter(dict(zip(rows, found.count.tolist(), strict=True))) == rounds_of(inside)


@pytest.mark.parametrize("mode", [traces.BRANCHES_ONLY, traces.NOTHING])
def test_filtered_recordings_have_no_rounds(mode: int) -> None:
    stack = [(0x1020, 0x1010, 7 << 4)] * 4
    assert not len(table_of(CycleTable(spaces(), loops=True), [Sample(stack)], mode))


def test_a_call_that_repeats_in_a_filtered_recording_is_no_copy() -> None:
    samples = [Sample([(0x1010, 0x1020), (0x1010, 0x1020)])]
    filtered, _ = table_of(TraceTable(spaces()), samples, traces.BRANCHES_ONLY)
    assert filtered.count.tolist() == [2]
    assert not len(table_of(CopyTable(spaces()), samples, traces.BRANCHES_ONLY))
    whole, _ = table_of(TraceTable(spaces()), samples, traces.CHAINS)
    assert whole.count.tolist() == [1]
