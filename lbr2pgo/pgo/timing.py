"""How long programs take that do the same work, in turns, as often as a precision needs.

Time is noisy: a round runs every program once, in random order, and only times of one round are
compared. A first round warms up and is not kept. When to stop depends on how wide intervals are,
never on which side of 1 they lie. Intervals and the test are distribution-free (sign test).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from lbr2pgo.support.arrays import F64
from lbr2pgo.support.errors import InputError

CONFIDENCE = 0.95
BY_CHANCE = 12.7
"""What chance alone makes differ between two pairs of runs does so by more than so many times as
much in one pair as in the other in 5 of 100 cases (Student's t of one degree of freedom)."""
FEWEST_RUNS = 6
"""Rounds that an interval of this confidence needs: 2 · 0.5⁶ is the first below 0.05."""
_MOST_RUNS, _MOST_SECONDS = 100, 30.0
"""Where the precision is not reached by then, it is not reached."""
_SHORTEST = 0.01
"""Seconds: what takes less is too short, its start weighs too much."""
_FAR_OUT = 14.826
"""Median deviations from the median: hyperfine's (src/outlier_detection.rs)."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often to time; raises InputError for what gives no interval."""

    exactly: int | None = None
    """0: not at all; None: as often as the precision needs."""
    precision: float = 0.01
    """Half the width of the intervals, as a share."""
    fewest: int = FEWEST_RUNS
    """Where the precision decides."""

    def __post_init__(self) -> None:
        if self.exactly is not None and self.exactly and self.exactly < FEWEST_RUNS:
            raise InputError(
                f"{self.exactly} runs can't give a {CONFIDENCE:.0%} confidence interval",
                cure=f"Give --runs {FEWEST_RUNS} or more, or 0 to leave time out.",
            )
        if not 0 < self.precision < 1:
            raise InputError(
                f"a precision of {self.precision:.3%} can't be had", cure="Give --precision 1, say."
            )


NOT_TIMED = Rounds(0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A median, and where the true one lies with a confidence of `CONFIDENCE`."""

    median: float
    low: float
    high: float

    @property
    def excludes_one(self) -> bool:
        """Whether a ratio is certainly another one than 1."""
        return self.low > 1 or self.high < 1


def time_in_turns(run: Callable[[int], float], programs: int, runs: Rounds) -> F64:
    """(rounds, programs): seconds that each `run(number of the program)` gave."""
    if runs.exactly != 0:
        for number in range(programs):
            run(number)
    rounds: list[F64] = []
    order, began = np.random.default_rng(1), monotonic()
    while not _is_enough(rounds, runs, monotonic() - began):
        rounds.append(np.zeros(programs))
        for number in order.permutation(programs).tolist():
            rounds[-1][number] = run(number)
    return np.array(rounds).reshape(-1, programs)


def _is_enough(rounds: list[F64], runs: Rounds, elapsed: float) -> bool:
    if runs.exactly is not None:
        return len(rounds) >= runs.exactly
    if len(rounds) < runs.fewest:
        return False
    is_over = len(rounds) >= _MOST_RUNS or elapsed > _MOST_SECONDS
    return is_over or _widest(np.array(rounds)) <= runs.precision


def _widest(times: F64) -> float:
    """Half the width of the widest interval, as a share; of a single program its own."""
    if not times.all():  # nothing can be told
        return 0.0
    compared = times[:, 1:] / times[:, :1] if times.shape[1] > 1 else times
    intervals = map(median_interval, compared.T)
    return max((each.high - each.low) / 2 / each.median for each in intervals)


def median_interval(values: F64) -> Interval:
    """The median and its sign-test interval: the k-th smallest and the k-th largest value.

    Each value lies below the true median with a chance of one half, whatever the distribution, so
    k is the largest rank for which fewer than k of n values lie there with at most half of the
    chance that the interval may miss. `values` is (n,), n at least `FEWEST_RUNS`.

    >>> median_interval(np.arange(1.0, 16.0))  # n = 15: k = 4, it misses with a chance of 3.5 %
    Interval(median=8.0, low=4.0, high=12.0)
    """
    ordered = np.sort(values)
    n = len(ordered)
    chance, rank = 0.5**n, 0
    while chance <= (1 - CONFIDENCE) / 2:
        rank += 1
        chance += math.comb(n, rank) * 0.5**n
    if rank == 0:
        raise ValueError(f"{n} values are too few for an interval")
    return Interval(float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[-rank]))


def sign_test(ratios: F64) -> float:
    """The chance of so many ratios (n,) on one side of 1, or more, if neither side is likelier.

    >>> sign_test(np.array([0.9] * 9 + [1.1]))  # 2 · (1 + 10) / 2¹⁰
    0.021484375
    """
    below, above = int((ratios < 1).sum()), int((ratios > 1).sum())
    n = below + above
    tail = sum(math.comb(n, k) for k in range(min(below, above) + 1))
    return min(1.0, tail * 0.5 ** (n - 1))


def outliers(times: F64) -> int:
    """How many of a program's times (n,) are far off all the others."""
    if not len(times):
        return 0
    far = np.abs(times - np.median(times))
    return int((far > _FAR_OUT * np.median(far)).sum())


def is_short(times: F64) -> bool:
    """Whether a program's times (n,) are too short to be told from those of its start."""
    return bool(len(times)) and float(np.median(times)) < _SHORTEST
