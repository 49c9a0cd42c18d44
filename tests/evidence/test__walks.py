"""Fall-throughs and their cycles against the traces that counting makes of the same stacks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from builders.sources import Sample
from builders.stack_tables import (
    IRQ,
    OUTSIDE,
    collected,
    entries,
    kinds,
    samples_of,
    spaces,
    stacks,
    timed,
    traces,
)
from builders.trace_oracle import Entry
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence._walks import list_duplicates
from lbr2pgo.evidence.collector import Samples
from lbr2pgo.evidence.cycle_counts import IterationCollector
from lbr2pgo.model.branch_stacks import (
    ABORT,
    MISSING,
    NOT_TAKEN,
    SATURATED,
    SPEC_SHIFT,
    TYPE_MASK,
    TYPE_SHIFT,
    cycle_flags,
)
from lbr2pgo.native.walk import Reason, StackKind
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
    found = timed(samples, kind)
    total: Counter[Run] = Counter()
    for start, end, count in zip(
        found.start.tolist(), found.end.tolist(), found.count.tolist(), strict=True
    ):
        total[start, end] += count
    assert dict(total) == runs_counted(samples, kind)


def listed(samples: Samples) -> tuple[U64, U8, I64]:
    """Runs by their addresses, what is known of their prediction, and their samples."""
    found = samples.runs
    ends, _, _ = samples.known.rows()
    return ends[found.run], found.prediction, found.sample


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_listed_runs_are_those_of_each_samples_traces(rows, kind: StackKind) -> None:
    given = samples_of([Sample(stack) for stack in rows], kind)
    runs, _, sample = listed(given)
    assert np.all(np.diff(sample) >= 0)
    for number, stack in enumerate(rows):
        own = [tuple(run) for run in runs[sample == number].tolist()]
        assert Counter(own) == runs_counted([Sample(stack)], kind)


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_each_entry_has_the_reason_that_counting_finds(rows, kind: StackKind) -> None:
    samples = [Sample(stack) for stack in rows]
    found = np.bincount(samples_of(samples, kind).runs.reason, minlength=len(Reason))
    counted = traces(samples, kind).tallies.copy()
    counted[[Reason.ABORTED, Reason.FILTERED, Reason.INTERRUPTED]] = 0  # of what is between two
    assert found.tolist() == counted.tolist()


def test_cycles_are_those_of_the_newer_entry_and_mispredictions_of_both() -> None:
    stack = [(0x1020, 0x1010, 7 << 4), (0x1030, 0x1010, 9 << 4 | 1), (0x1030, 0x1020, 0)]
    found = timed([Sample(stack)])
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
    assert len(timed(samples)) == len(samples)


Iterations = Counter[tuple[int, int, int, str]]


def goes_on(entry: Entry) -> bool:
    """Whether time goes on across an entry: a branch that lasted, here or in another image."""
    source, target, word = entry
    is_irq = word & TYPE_MASK << TYPE_SHIFT == IRQ
    return (
        (source, target) != (0, 0) and word >> SPEC_SHIFT & 3 != 1 and not word & NOT_TAKEN
        and not word & ABORT and (not is_irq or {source, target} <= {0, OUTSIDE})
    )  # fmt: skip


def without_copy(stack: list[Entry]) -> list[Entry]:
    """The second entry is a copy if it repeats the newest, both are branches of the program, and no
    tight loop explains it."""
    newest = stack[:2]
    is_repeated = len(newest) == 2 and newest[0][:2] == newest[1][:2]
    are_branches = all(goes_on((*entry[:2], entry[2] & ~ABORT)) for entry in newest)
    is_inside = is_repeated and any(0x1000 <= address < 0x5000 for address in newest[0][:2])
    if is_repeated and are_branches and is_inside and not 0 <= newest[0][0] - newest[0][1] < 0x1000:
        return [newest[0], *stack[2:]]
    return stack


def iterations_of(stack: list[Entry]) -> Iterations:
    """By target, source and cycles: how many, and how the branches at and between their ends were
    predicted."""
    found: Iterations = Counter()
    stack = without_copy(stack)
    for i, (source, target, _) in enumerate(stack):
        if not 0x1000 <= target <= source < 0x5000:
            continue
        times = []
        for j in range(i, len(stack)):
            if not goes_on(stack[j]):
                break
            if j > i and stack[j][1] < target <= stack[j - 1][0] <= source:
                break  # it fell into the loop, which it had left
            if j > i and stack[j][:2] == (source, target):
                total = SATURATED if 65535 in times else sum(times)
                key = target, source, MISSING if 0 in times else total
                found[*key, "count"] += 1
                words = [each[2] for each in stack[i : j + 1]]
                is_missed = any(each & 1 for each in words)
                found[*key, "mispredicted"] += is_missed
                found[*key, "prediction_unknown"] += not is_missed and not all(
                    each & 2 for each in words
                )
                break
            times.append(stack[j][2] >> 4 & 0xFFFF)
    return found


def counted_in(stack: list[Entry], kind: StackKind = StackKind.CONSECUTIVE) -> Iterations:
    found = collected(IterationCollector(spaces()), [Sample(stack)], kind)
    rows = [*zip(found.start.tolist(), found.end.tolist(), found.cycles.tolist(), strict=True)]
    return Counter(
        {
            (*row, name): count
            for name in ("count", "mispredicted", "prediction_unknown")
            for row, count in zip(rows, getattr(found, name).tolist(), strict=True)
        }
    )


def seen_once(cycles: int) -> Iterations:
    """One iteration, whose branch does not say how it was predicted."""
    return Counter({(0x1010, 0x3500, cycles, name): 1 for name in ("count", "prediction_unknown")})


@settings(max_examples=800, deadline=None)
@given(st.lists(entries, max_size=10) | st.lists(entries, max_size=6).map(lambda e: e[:1] + e))
def test_iterations(stack: list[Entry]) -> None:
    assert counted_in(stack) == iterations_of(stack)


BACK = (0x3500, 0x1010)
"""A loop of more than 4 KiB, which no recorder repeats for its own sake."""


def test_a_copy_of_the_newest_entry_has_no_cycles() -> None:
    """Its own count differs, and is not that of the iteration."""
    stack = [(*BACK, 9 << 4), (*BACK, 3 << 4), (0x1020, 0x1030, 5 << 4), (*BACK, 4 << 4)]
    assert counted_in(stack) == seen_once(14)


@pytest.mark.parametrize("missed", range(3))
def test_a_branch_that_is_mispredicted_anywhere_in_a_round_counts(missed: int) -> None:
    round_ = [BACK, (0x1020, 0x1030), BACK]
    stack = [(*branch, 4 << 4 | (1 if i == missed else 2)) for i, branch in enumerate(round_)]
    assert counted_in(stack)[0x1010, 0x3500, 8, "mispredicted"] == 1


def test_a_loop_that_is_left_and_entered_anew_has_no_round_in_between() -> None:
    """The function is called again, and falls into it; calls out of it and back do no harm."""
    left = [(0x4010, 0x1000), (0x3510, 0x4000)]
    kept = [(0x4010, 0x1040), (0x1030, 0x4000)]
    for between, rounds in ((left, 0), (kept, 1)):
        stack = [(*BACK, 4 << 4), *((*branch, 3 << 4) for branch in between), (*BACK, 9 << 4)]
        assert counted_in(stack)[0x1010, 0x3500, 10, "count"] == rounds


def test_no_cycles_at_all_are_a_number() -> None:
    """As BRBE and the architectural LBR have them, where perf's 0 says that none are known."""
    stack = [(*BACK, cycle_flags(5)), (0x1020, 0x1030, cycle_flags(0)), (*BACK, cycle_flags(4))]
    assert counted_in(stack) == seen_once(5)


@pytest.mark.parametrize("flags", [NOT_TAKEN, 1 << SPEC_SHIFT, IRQ])
def test_what_is_no_branch_is_no_copy_and_breaks_time(flags: int) -> None:
    stack = [(*BACK, 9 << 4), (*BACK, flags | 3 << 4), (*BACK, 5 << 4), (*BACK, 4 << 4)]
    assert counted_in(stack) == seen_once(5)


@pytest.mark.parametrize("kind", [StackKind.SELECTED, StackKind.OPEN_CALLS, StackKind.AS_LLVM])
def test_only_consecutive_branches_tell(kind: StackKind) -> None:
    assert not counted_in([(0x1020, 0x1010, 7 << 4)] * 4, kind)


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
