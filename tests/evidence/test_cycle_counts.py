from __future__ import annotations

import numpy as np
import pytest
from builders.sources import Sample
from builders.stack_tables import no_runs, samples_of, timed

from lbr2pgo.evidence.cycle_counts import CycleCollector, CycleCounts, merge
from lbr2pgo.model.branch_stacks import MISSING, SATURATED

FROM_20 = (0x1020, 0x1010)
"""Back to 0x1010, from where it is 0x10 bytes to itself."""


def ran(cycles: int, *, weight: int = 1, flags: int = 2) -> Sample:
    """The run from 0x1010 to 0x1020, which took so long."""
    return Sample([(*FROM_20, cycles << 4 | flags), (*FROM_20, 2)], weight=weight)


def counts(*samples: Sample) -> CycleCounts:
    return timed(samples)


def test_equal_cycles_of_one_run_are_one_row() -> None:
    found = counts(ran(7), ran(9), ran(7, weight=3))
    assert (found.start.tolist(), found.end.tolist()) == ([0x1010] * 2, [0x1020] * 2)
    assert (found.cycles.tolist(), found.count.tolist()) == ([7, 9], [4, 1])


def test_missing_and_saturated_counts_have_rows_of_their_own() -> None:
    assert counts(ran(0), ran(65535), ran(3)).cycles.tolist() == [3, MISSING, SATURATED]


def test_a_misprediction_that_led_into_a_run_counts_with_its_cycles() -> None:
    stacks = [[(*FROM_20, 9 << 4 | 2), (*FROM_20, flags)] for flags in (1, 0, 2)]
    found = counts(*map(Sample, stacks))
    assert (found.mispredicted.tolist(), found.prediction_unknown.tolist()) == ([1], [1])


def test_how_the_end_was_predicted_goes_with_the_cycles() -> None:
    found = counts(ran(7, flags=1, weight=2), ran(7, flags=2, weight=3), ran(9, flags=0))
    assert found.mispredicted.tolist() == [2, 0]
    assert found.prediction_unknown.tolist() == [0, 1]


def test_collectors_of_other_samples_add_up() -> None:
    runs, others = no_runs(), no_runs()
    one, other = CycleCollector(runs), CycleCollector(others)
    one.add(samples_of([ran(7), ran(9)], runs=runs))
    other.add(samples_of([ran(7), ran(11)], runs=others))
    one.merge(other)
    found = one.result()
    assert (found.cycles.tolist(), found.count.tolist()) == ([7, 9, 11], [2, 1, 1])


def test_merging_nothing_gives_an_empty_table() -> None:
    assert len(merge(())) == 0
    assert merge([counts(ran(7)), merge(())]).count.tolist() == [1]


def test_rows_can_be_taken_and_not_changed() -> None:
    found = counts(ran(7), ran(9))
    assert found.take(np.array([1])).cycles.tolist() == [9]
    with pytest.raises(ValueError, match="read-only"):
        found.count[0] = 5
