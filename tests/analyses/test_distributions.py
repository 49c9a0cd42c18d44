from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.analyses.distributions import Distribution
from lbr2pgo.model.branch_stacks import MISSING, SATURATED

STANDARD = {1: 10484, 2: 16728, 3: 4563, 4: 15815, 6: 4770, 24: 3804, 32: 5567}


def of(counts: dict[int, int]) -> Distribution:
    return Distribution.of(
        np.array(list(counts), np.uint64), np.array(list(counts.values()), np.uint64)
    )


def test_the_rates_of_the_standard_text() -> None:
    rates = [round(100 * rate, 1) for rate in of(STANDARD).rates]
    assert rates == [17.0, 27.1, 7.4, 25.6, 7.7, 6.2, 9.0]


def test_missing_and_saturated_are_apart() -> None:
    found = of({MISSING: 7, SATURATED: 3, 10: 5})
    assert (found.missing, found.saturated, found.measured) == (7, 3, 5)
    assert found.cycles.tolist() == [10]
    assert found.mean == 10


def test_no_cycles_at_all_are_measured() -> None:
    found = of({0: 4, 9: 1})
    assert (found.missing, found.measured, found.percentile(50)) == (0, 5, 0)
    assert of({0: 4}).left_out == 0
    assert [mode.cycles for mode in of({0: 40}).modes()] == [0]


def test_nothing_measured() -> None:
    found = of({MISSING: 4})
    assert (found.mean, found.trimmed_mean, found.percentile(50), found.modes()) == (
        None,
        None,
        None,
        (),
    )


def test_repeated_cycles_add_up() -> None:
    found = Distribution.of(np.array([5, 3, 5], np.uint64), np.array([1, 2, 3], np.uint64))
    assert (found.cycles.tolist(), found.count.tolist()) == ([3, 5], [2, 4])


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 65534), st.integers(1, 50), min_size=1, max_size=30))
def test_percentiles_are_those_of_the_sorted_list(counts: dict[int, int]) -> None:
    every = sorted(cycles for cycles, n in counts.items() for _ in range(n))
    found = of(counts)
    for percent in (1, 50, 90, 99, 100):
        place = next(i for i in range(len(every)) if i + 1 >= percent / 100 * len(every))
        assert found.percentile(percent) == every[place]


def test_a_few_interrupts_move_the_mean_but_not_what_is_typical() -> None:
    found = of({19: 500, 20: 1000, 21: 495, 50_000: 10})
    assert found.mean == pytest.approx(269, abs=1)
    assert found.trimmed_mean == pytest.approx(20, abs=0.1)


def test_of_few_values_none_is_left_out_and_all_are_told() -> None:
    found = of({80: 1, 300: 1})
    assert (found.trimmed_mean, found.left_out, found.told) == (190, 0, "80, 300")
    assert of(dict.fromkeys(range(1, 100), 1)).left_out == 0
    assert of(dict.fromkeys(range(1, 101), 1)).trimmed_mean == 50
    assert of(STANDARD).told == "1 to 6 85 % · 24 to 32 15 %"


def test_what_is_typical_of_one_value_is_the_value() -> None:
    assert of({7: 1}).trimmed_mean == 7
    assert of({7: 1_000_000}).trimmed_mean == 7


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 65534), st.integers(1, 50), min_size=1, max_size=30))
def test_the_typical_value_leaves_out_the_slowest_hundredth(counts: dict[int, int]) -> None:
    every = sorted(cycles for cycles, n in counts.items() for _ in range(n))
    kept = every[: len(every) - len(every) // 100]
    assert of(counts).trimmed_mean == pytest.approx(sum(kept) / len(kept))


def test_each_mode_says_how_its_ends_were_predicted() -> None:
    cycles = np.array([20, 300, 300], np.uint64)
    count, missed = np.array([500, 300, 200], np.uint64), np.array([0, 150, 0], np.uint64)
    found = Distribution.of(cycles, count, missed, np.array([500, 0, 200], np.uint64)).modes()
    assert [(mode.cycles, mode.mispredicted) for mode in found] == [(20, None), (300, 0.5)]
    assert [str(mode) for mode in found] == ["20 (50%)", "300 (50%, 50% mispredicted)"]
