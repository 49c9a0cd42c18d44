from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.evidence.effective_samples import effective_part


def moments(samples: list[tuple[int, int]]) -> np.ndarray:
    """Of samples that saw a branch n times, t of them taken."""
    n, t = np.array(samples, float).T
    return np.array([[n.sum(), t.sum(), (n * n).sum(), (n * t).sum(), (t * t).sum()]])


def test_single_observations_count_in_full() -> None:
    assert effective_part(moments([(1, 1), (1, 0), (1, 0)]))[0] == pytest.approx(1)


def test_samples_of_one_mind_count_once_each() -> None:
    assert effective_part(moments([(10, 10), (10, 0)] * 50))[0] == pytest.approx(0.1)


def test_mixed_samples_of_a_branch_that_alternates_are_not_trusted_beyond_one_each() -> None:
    assert effective_part(moments([(10, 5)] * 50))[0] == pytest.approx(0.1)


def test_always_one_way_rests_on_the_number_of_samples() -> None:
    assert effective_part(moments([(4, 4)] * 5))[0] == pytest.approx(0.25)


def test_a_few_large_samples_that_differ_count_for_very_little() -> None:
    even = effective_part(moments([(1, 0)] * 1000 + [(31, 31)] * 3))[0]
    assert even < 0.04


def test_nothing_seen_changes_nothing() -> None:
    assert effective_part(np.zeros((1, 5)))[0] == 1


@pytest.mark.parametrize("stay", [0.5, 0.9, 0.98])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_intervals_hold_for_a_branch_that_tends_to_repeat_itself(stay: float, share: float) -> None:
    """Stacks of 20 outcomes of a Markov chain, many times over."""
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        rows = []
        for _ in range(60):
            outcome, taken = random.random() < share, 0
            for _ in range(20):
                taken += outcome
                if random.random() > stay:
                    outcome = random.random() < share
            rows.append((20, taken))
        table = moments(rows)
        observed = table[0, 1] / table[0, 0]
        n = table[0, 0] * effective_part(table)[0]
        low, high = wilson(np.array([observed]), np.array([n]))
        inside += bool(low[0] <= share <= high[0])
    assert inside >= 0.93 * 200
