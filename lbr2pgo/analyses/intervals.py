"""Confidence intervals of shares."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import F64

CONFIDENCE = 0.95
_Z = 1.959963984540054  # quantile of the normal distribution, 2.5 % on either side


def wilson(share: F64, observations: F64) -> tuple[F64, F64]:
    """Bounds of true shares, given observed ones and how many observations each rests on.

    Wilson's score interval at CONFIDENCE (E. B. Wilson, JASA 22, 1927): it stays inside [0, 1],
    and a share of 0 or 1 is bounded by the sample size. Without observations it is [0, 1].

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10.0, 100.0]))
    >>> [f"{a:.3f} {b:.3f}" for a, b in zip(low, high, strict=True)]
    ['0.000 0.278', '0.404 0.596']
    """
    n = np.maximum(observations, 1e-12)
    square = _Z * _Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = _Z * np.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    # The bounds at either end are exact, whatever rounding does.
    return np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)
