"""Modes of samples whose modes are known: they are drawn here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbr2pgo.analyses.distributions import Distribution, Mode
from lbr2pgo.analyses.modes import FEWEST

STANDARD = {1: 10484, 2: 16728, 3: 4563, 4: 15815, 6: 4770, 24: 3804, 32: 5567}


def modes(*parts: np.ndarray) -> tuple[Mode, ...]:
    drawn = np.rint(np.concatenate(parts)).astype(np.int64)
    values, counts = np.unique(drawn[drawn > 0], return_counts=True)
    return Distribution.of(values.astype(np.uint64), counts.astype(np.uint64)).modes()


def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng([20260101, seed])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("spread", [0.01, 0.02])
@pytest.mark.parametrize(("low", "high"), [(20, 25), (300, 324), (1000, 1080), (60, 65)])
def test_two_modes_close_to_one_another_are_both_found(
    low: int, high: int, spread: float, seed: int
) -> None:
    chance = draw(seed)
    found = modes(chance.normal(low, spread * low, 1000), chance.normal(high, spread * high, 1000))
    assert sorted(mode.cycles for mode in found) == [
        pytest.approx(low, rel=0.02), pytest.approx(high, rel=0.02)
    ]  # fmt: skip
    assert all(mode.share == pytest.approx(0.5, abs=0.04) for mode in found)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [60, 500, 20_000])
def test_modes_far_apart_need_few_values(count: int, seed: int) -> None:
    chance = draw(seed)
    first, second = modes(chance.normal(80, 5, count), chance.normal(290, 15, count // 2))
    assert first.cycles == pytest.approx(80, abs=3)
    assert second.cycles == pytest.approx(290, abs=10)
    assert first.share == pytest.approx(2 / 3, abs=0.01)


ONE_MODE = {
    "flat": lambda chance: chance.uniform(10, 50, 2000),
    "flat and wide": lambda chance: chance.uniform(1, 1000, 20_000),
    "flat and thin": lambda chance: chance.uniform(1, 60_000, 2000),
    "log-normal": lambda chance: chance.lognormal(np.log(300), 0.5, 2000),
    "long tail": lambda chance: chance.lognormal(np.log(100), 1.0, 20_000),
    "few": lambda chance: chance.lognormal(np.log(20), 0.3, 200),
    "normal": lambda chance: chance.normal(200, 20, 3000),
}


@pytest.mark.parametrize("kind", ONE_MODE)
def test_one_mode_is_one_mode(kind: str) -> None:
    assert [len(modes(ONE_MODE[kind](draw(seed)))) for seed in range(30)] == [1] * 30


def of(counts: dict[int, int]) -> tuple[Mode, ...]:
    values, n = np.array(list(counts), np.uint64), np.array(list(counts.values()), np.uint64)
    return Distribution.of(values, n).modes()


def test_the_largest_share_comes_first() -> None:
    assert [mode.cycles for mode in of({10: 50, 100: 500})] == [100, 10]


def test_many_modes_are_told_in_groups_of_those_close_together() -> None:
    assert [str(mode) for mode in of(STANDARD)] == ["1 to 6 (85%)", "24 to 32 (15%)"]


def test_few_modes_are_told_one_by_one() -> None:
    assert {mode.cycles for mode in of({50: 500, 60: 500, 300: 100})} == {50, 60, 300}


@pytest.mark.parametrize("one", range(1, FEWEST))
def test_from_too_few_values_no_mode_is_made(one: int) -> None:
    """Even of two that lie far apart: with so few, no second one would be certain."""
    assert of({80: one, 3000: FEWEST - 1 - one} if one < FEWEST - 1 else {80: one}) == ()
    assert len(of({80: FEWEST // 2, 3000: FEWEST // 2})) == 2


@pytest.mark.parametrize("strays", [{400: 3}, {400: 99}, {1: 50, 20_000: 40}])
def test_strays_are_no_mode(strays: dict[int, int]) -> None:
    assert [mode.cycles for mode in of({50: 10_000, **strays})] == [50]


@pytest.mark.parametrize("counts", [{80: 30, 300: 6}, {78: 5, 80: 20, 81: 5, 290: 3, 300: 3}])
def test_what_is_too_little_for_a_mode_is_in_the_share_of_none(counts: dict[int, int]) -> None:
    """80 is said of 83 %, not of all, where 17 % took 300 cycles."""
    (mode,) = of(counts)
    assert (mode.cycles, mode.share) == (80, pytest.approx(30 / 36))


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 65534), st.integers(1, 10**6), min_size=1, max_size=30))
@example({8252: 186067, 21553: 186911})
def test_modes_lie_within_what_was_measured_and_share_it(counts: dict[int, int]) -> None:
    found = of(counts)
    assert all(min(counts) <= mode.cycles <= max(counts) for mode in found)
    assert sum(mode.share for mode in found) <= 1.000_001
    assert bool(found) == (sum(counts.values()) >= FEWEST)
