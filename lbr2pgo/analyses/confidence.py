"""Confidence intervals of shares."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import F64

CONFIDENCE = 0.95
_Z = 1.959963984540054  # quantile of the normal distribution, 2.5 % on either side


def for_all(intervals: int) -> float:
    """How many standard deviations wide so many must be for all of them to hold at CONFIDENCE.

    Bonferroni's correction: chance that strikes one of a thousand rows is still chance.

    >>> [f"{for_all(n):.2f}" for n in (1, 1000)]
    ['1.96', '4.06']
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / max(intervals, 1))


def wilson(share: F64, observations: F64 | float, z: float = _Z) -> tuple[F64, F64]:
    """Bounds of true shares, given observed ones and how many observations each, or all, rest on.

    Wilson's score interval at CONFIDENCE (E. B. Wilson, JASA 22, 1927), or `z` standard deviations
    wide (`for_all`): it stays inside [0, 1], and a share of 0 or 1 is bounded by the sample size.
    Without observations it is [0, 1].

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10.0, 100.0]))
    >>> [f"{a:.3f} {b:.3f}" for a, b in zip(low, high, strict=True)]
    ['0.000 0.278', '0.404 0.596']
    """
    n = np.maximum(observations, 1e-12)
    square = z * z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = z * np.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    # The bounds at either end are exact, whatever rounding does.
    return np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)


def difference(
    new: F64, new_bounds: tuple[F64, F64], old: F64, old_bounds: tuple[F64, F64]
) -> tuple[F64, F64]:
    """Bounds of differences of independent shares, given those of the shares.

    Newcombe's method 10 (R. G. Newcombe, Statistics in Medicine 17, 1998): with Wilson's bounds it
    stays inside [-1, 1] and holds for shares near 0 and 1 too.

    >>> share, bounds = np.array([0.5]), (np.array([0.4]), np.array([0.6]))
    >>> low, high = difference(share + 0.2, (bounds[0] + 0.2, bounds[1] + 0.2), share, bounds)
    >>> f"{low[0]:.3f} {high[0]:.3f}"
    '0.059 0.341'
    """
    change = new - old
    below = np.hypot(new - new_bounds[0], old_bounds[1] - old)
    above = np.hypot(new_bounds[1] - new, old - old_bounds[0])
    return change - below, change + above
