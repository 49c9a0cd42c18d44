from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.analyses.distributions import Distribution

STANDARD = {1: 10484, 2: 16728, 3: 4563, 4: 15815, 6: 4770, 24: 3804, 32: 5567}


def of(counts: dict[int, int]) -> Distribution:
    return Distribution.of(
        np.array(list(counts), np.uint64), np.array(list(counts.values()), np.uint64)
    )


def test_the_rates_of_the_standard_text() -> None:
    rates = [round(100 * rate, 1) for rate in of(STANDARD).rates]
    assert rates == [17.0, 27.1, 7.4, 25.6, 7.7, 6.2, 9.0]


def normal(middle: float, width: float, count: int, seed: int) -> dict[int, int]:
    drawn = np.rint(np.random.default_rng(seed).normal(middle, width, count)).astype(int)
    values, counts = np.unique(drawn[drawn > 0], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def both(*parts: dict[int, int]) -> Distribution:
    total: dict[int, int] = {}
    for part in parts:
        for cycles, count in part.items():
            total[cycles] = total.get(cycles, 0) + count
    return of(total)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [60, 500, 20_000])
def test_a_bimodal_block_has_two_modes(seed: int, count: int) -> None:
    modes = both(normal(80, 5, count, seed), normal(290, 15, count // 2, seed + 99)).modes()
    assert len(modes) == 2
    assert modes[0] == pytest.approx(80, abs=3)
    assert modes[1] == pytest.approx(290, abs=10)


@pytest.mark.parametrize("seed", range(20))
def test_one_hump_is_one_mode(seed: int) -> None:
    (mode,) = of(normal(200, 20, 3000, seed)).modes()
    assert mode == pytest.approx(200, abs=10)


def test_the_highest_hump_comes_first() -> None:
    assert of({10: 5, 100: 500}).modes()[0] == 100


def test_neighbouring_small_counts_may_be_modes_of_their_own() -> None:
    modes = of(STANDARD).modes()
    assert {2, 4, 32} <= set(modes)


def test_a_stray_value_is_no_hump() -> None:
    assert of({50: 10_000, 400: 3}).modes() == (50,)


def test_missing_and_saturated_are_apart() -> None:
    found = of({0: 7, 65535: 3, 10: 5})
    assert (found.missing, found.saturated, found.measured) == (7, 3, 5)
    assert found.cycles.tolist() == [10]
    assert found.mean == 10


def test_nothing_measured() -> None:
    found = of({0: 4})
    assert (found.mean, found.percentile(50), found.modes()) == (None, None, ())


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


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 65534), st.integers(1, 10**6), min_size=1, max_size=30))
def test_modes_lie_within_what_was_measured(counts: dict[int, int]) -> None:
    modes = of(counts).modes()
    assert modes
    assert all(min(counts) <= mode <= max(counts) for mode in modes)
