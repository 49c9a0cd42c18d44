from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.analyses.confidence import for_all, wilson


def test_the_interval_of_a_textbook() -> None:
    """Five of ten (A. Agresti, B. A. Coull: 0.237 to 0.763)."""
    low, high = wilson(np.array([0.5]), np.array([10.0]))
    assert (round(low[0], 3), round(high[0], 3)) == (0.237, 0.763)


def test_without_observations_everything_is_possible() -> None:
    low, high = wilson(np.array([0.0]), np.array([0.0]))
    assert low[0] == 0
    assert high[0] == pytest.approx(1)


@settings(deadline=None)
@given(st.integers(1, 10**9), st.data())
def test_the_share_lies_in_its_interval(n: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, n)) / n
    low, high = wilson(np.array([share]), np.array([float(n)]))
    assert 0 <= low[0] <= share <= high[0] <= 1


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("n", [20, 200, 2000])
def test_coverage_on_independent_observations(share: float, n: int) -> None:
    """Near 95 % on average; single cases swing by a few per cent, since counts are whole."""
    hits = np.random.default_rng(7).binomial(n, share, 20_000)
    low, high = wilson(hits / n, np.full(20_000, float(n)))
    assert ((low <= share) & (share <= high)).mean() > 0.92


def test_intervals_that_hold_together_are_wider_the_more_there_are() -> None:
    """Of 100 shares, all 100 lie in theirs nineteen times in twenty."""
    shares = np.random.default_rng(3).uniform(0.05, 0.95, 100)
    seen = np.random.default_rng(4).binomial(1000, shares, (400, 100)) / 1000
    low, high = wilson(seen, np.full(seen.shape, 1000.0), for_all(100))
    held = ((low <= shares) & (shares <= high)).all(axis=1)
    assert 0.92 < held.mean() < 1
