"""Where the functions that run change, planted and found."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lbr2pgo.counting.activity import Activity
from lbr2pgo.counting.change_points import LEAST_SHARE, Phase, phases_of
from lbr2pgo.support.arrays import F64, U64

SLICES, WIDTH, START = 200, 1000, 5_000_000


def activity(samples: U64) -> Activity:
    slices, functions = samples.shape
    last = START + slices * WIDTH - 500
    names = ("",) * functions
    return Activity(START, WIDTH, START + 300, last, samples, np.arange(functions), names)


def drawn(seed: int, per_slice: int, *parts: tuple[F64, int]) -> U64:
    """Slices of samples, so many of each distribution."""
    chance = np.random.default_rng(seed)
    rows = [chance.multinomial(per_slice, shares, slices) for shares, slices in parts]
    return np.vstack(rows).astype(np.uint64)


def shares(seed: int, functions: int) -> F64:
    return np.random.default_rng(seed).dirichlet(np.full(functions, 0.3))


def cuts(phases: tuple[Phase, ...]) -> list[int]:
    return [phases[0].slices[0], *(phase.slices[1] for phase in phases)]


@pytest.mark.parametrize("functions", [1, 3, 50, 1000])
@pytest.mark.parametrize("per_slice", [1, 5, 200])
def test_chance_is_no_change(functions: int, per_slice: int) -> None:
    for seed in range(3):
        samples = drawn(seed, per_slice, (shares(seed, functions), SLICES))
        assert cuts(phases_of(activity(samples))) == [0, SLICES]


@pytest.mark.parametrize("functions", [3, 50])
@pytest.mark.parametrize("per_slice", [20, 500])
@pytest.mark.parametrize("warm_up", [10, 60, 150])
def test_a_change_is_found_where_it_is(functions: int, per_slice: int, warm_up: int) -> None:
    weights = 0.4 ** np.arange(functions)
    one, other = weights / weights.sum(), weights[::-1] / weights.sum()
    samples = drawn(3, per_slice, (one, warm_up), (other, SLICES - warm_up))
    assert cuts(phases_of(activity(samples))) == [0, warm_up, SLICES]


def test_what_comes_between_is_a_phase_of_its_own_and_what_comes_again_another() -> None:
    one, other = shares(1, 20), shares(2, 20)
    samples = drawn(3, 100, (one, 90), (other, 20), (one, 90))
    assert cuts(phases_of(activity(samples))) == [0, 90, 110, 200]


def test_a_small_change_is_no_phase_however_sure_it_is() -> None:
    samples = drawn(1, 10_000, (np.array([0.5, 0.5]), 100), (np.array([0.6, 0.4]), 100))
    assert cuts(phases_of(activity(samples))) == [0, 200]


def test_hardly_any_samples_are_no_phase() -> None:
    samples = np.zeros((SLICES, 2), np.uint64)
    samples[:, 0] = 100
    samples[50:53] = [0, 100]
    assert LEAST_SHARE * SLICES > 3
    assert cuts(phases_of(activity(samples))) == [0, SLICES]


def test_the_slice_in_which_one_gives_way_to_the_next_is_no_phase() -> None:
    one, other = np.array([0.7, 0.2, 0.1, 0]), np.array([0, 0.1, 0.2, 0.7])
    samples = drawn(1, 500, (one, 100), ((one + other) / 2, 1), (other, 99))
    _, cut, _ = cuts(phases_of(activity(samples)))
    assert cut in (100, 101)
    third = np.array([0, 1.0, 0, 0])
    samples = np.vstack([drawn(1, 500, (one, 50)), drawn(2, 25_000, (third, 1)), samples[101:]])
    assert cuts(phases_of(activity(samples))) == [0, 50, 51, 150]


def test_a_gap_without_samples_belongs_to_a_phase_beside_it() -> None:
    samples = np.zeros((SLICES, 2), np.uint64)
    samples[:50, 0] = samples[150:, 1] = 100
    first, second = phases_of(activity(samples))
    assert first.slices[1] == second.slices[0]
    assert 50 <= first.slices[1] <= 150
    assert (first.samples, second.samples) == (5000, 5000)


def test_phases_follow_each_other_to_the_nanosecond_and_are_called_by_what_leads() -> None:
    samples = np.array([[60, 30, 9, 1]] * 100 + [[0, 5, 5, 90]] * 100, np.uint64)
    found = activity(samples)
    phases = phases_of(found)
    assert [phase.time for phase in phases] == [
        (found.first, START + 100 * WIDTH - 1),
        (START + 100 * WIDTH, found.last),
    ]
    assert [phase.leaders for phase in phases] == [((0, 0.6), (1, 0.3)), ((3, 0.9),)]
    assert sum(phase.samples for phase in phases) == samples.sum()
    assert all(one.slices[1] == other.slices[0] for one, other in pairwise(phases))


def test_a_single_sample_is_one_phase() -> None:
    found = phases_of(
        Activity(8, 1, 8, 8, np.ones((1, 1), np.uint64), np.zeros(1, np.int64), ("",))
    )
    assert [(phase.slices, phase.time, phase.samples) for phase in found] == [((0, 1), (8, 8), 1)]
