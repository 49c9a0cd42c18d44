"""How often programs are timed, and what that tells; times are drawn, no program runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lbr2pgo.pgo.timing import (
    CONFIDENCE,
    FEWEST_RUNS,
    NOT_TIMED,
    Interval,
    Rounds,
    median_interval,
    outliers,
    sign_test,
    time_in_turns,
)
from lbr2pgo.support.errors import InputError


def drawn(spread: float, factors: tuple[float, ...] = (1.0, 1.1)) -> Callable[[int], float]:
    """A machine on which programs take so long, with such a spread."""
    random = np.random.default_rng(7)
    return lambda number: factors[number] * (1 + spread * random.standard_normal())


def test_noise_needs_more_rounds_and_a_precision_fewer() -> None:
    rounds = [
        len(time_in_turns(drawn(spread), 2, Rounds(precision=precision)))
        for spread, precision in ((0.0, 0.01), (0.02, 0.01), (0.02, 0.04), (0.2, 0.01))
    ]
    assert rounds[0] == FEWEST_RUNS
    assert len(time_in_turns(drawn(0.0), 2, Rounds(fewest=9))) == 9
    assert FEWEST_RUNS < rounds[1] < 100
    assert rounds[2] < rounds[1]
    assert rounds[3] == 100  # the precision can't be reached


def test_it_stops_where_the_precision_is_reached() -> None:
    times = time_in_turns(drawn(0.02), 2, Rounds())
    ratio = median_interval(times[:, 1] / times[:, 0])
    assert (ratio.high - ratio.low) / 2 <= 0.01 * ratio.median
    earlier = median_interval(times[:-1, 1] / times[:-1, 0])
    assert (earlier.high - earlier.low) / 2 > 0.01 * earlier.median


def test_a_program_alone_is_timed_until_its_own_times_are_known() -> None:
    assert len(time_in_turns(drawn(0.0), 1, Rounds())) == FEWEST_RUNS
    assert len(time_in_turns(drawn(0.05), 1, Rounds())) > FEWEST_RUNS


def test_what_is_asked_for_exactly_is_done_after_one_that_warms_up() -> None:
    asked: list[int] = []
    assert time_in_turns(lambda number: float(asked.append(number) or 1), 2, Rounds(7)).shape == (
        7,
        2,
    )
    assert asked[:2] == [0, 1]
    assert len(asked) == 2 + 14
    assert time_in_turns(drawn(0), 2, NOT_TIMED).shape == (0, 2)


@pytest.mark.parametrize(
    ("runs", "said"), [((5,), "5 runs can't give a 95% conf"), ((None, 0.0), "a precision of 0")]
)
def test_what_gives_no_interval_is_refused(runs: tuple[int, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Rounds(*runs)


def test_the_interval_is_as_wide_as_six_values_need() -> None:
    interval = median_interval(np.array([5.0, 1.0, 4.0, 2.0, 6.0, 3.0]))
    assert (interval.low, interval.median, interval.high) == (1.0, 3.5, 6.0)
    with pytest.raises(ValueError, match="5 values"):
        median_interval(np.arange(5.0))


@pytest.mark.parametrize("rounds", [6, 9, 15, 40])
def test_the_interval_covers_the_true_median_as_often_as_it_says(rounds: int) -> None:
    # A skewed distribution with a long tail, as times are.
    random = np.random.default_rng(rounds)
    draws = random.exponential(size=(4000, rounds))
    found = [median_interval(row) for row in draws]
    covered = np.mean([each.low <= np.log(2) <= each.high for each in found])
    assert CONFIDENCE - 0.01 <= covered <= 0.99


@pytest.mark.parametrize("rounds", [6, 11, 20])
def test_the_test_and_the_interval_agree(rounds: int) -> None:
    random = np.random.default_rng(rounds)
    for shift in (0.0, 0.5, 1.0):
        for ratios in np.exp(random.standard_normal((300, rounds)) + shift):
            found = median_interval(ratios)
            assert found.excludes_one == (sign_test(ratios) <= 1 - CONFIDENCE)


def test_equal_programs_are_told_apart_as_seldom_as_it_says() -> None:
    random = np.random.default_rng(3)
    chances = [sign_test(np.exp(row)) for row in random.standard_normal((4000, 20))]
    assert np.mean(np.array(chances) < 0.05) < 0.055
    assert sign_test(np.ones(8)) == 1


def test_times_far_off_the_others_are_outliers() -> None:
    assert outliers(np.array([1, 1.01, 0.99, 1.02, 3.0])) == 1
    assert outliers(np.random.default_rng(1).exponential(size=50)) == 0
    assert outliers(np.empty(0)) == 0
    assert Interval(1.1, 1.05, 1.2).excludes_one
