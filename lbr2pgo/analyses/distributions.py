"""Distributions of cycles: shares, percentiles, and the humps that they have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.evidence.cycle_counts import MISSING, SATURATED
from lbr2pgo.support.arrays import F64, I64, U64


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often something took how many cycles."""

    cycles: U64
    """(n,), ascending, without missing and saturated ones."""
    count: U64
    """(n,)"""
    missing: int
    saturated: int

    @classmethod
    def of(cls, cycles: U64, count: U64) -> Distribution:
        """From rows in any order, in which cycles may repeat."""
        is_missing, is_saturated = cycles == MISSING, cycles == SATURATED
        measured = ~(is_missing | is_saturated)
        unique, place = np.unique(cycles[measured], return_inverse=True)
        total = np.zeros(len(unique), dtype=np.uint64)
        np.add.at(total, place.reshape(-1), count[measured])
        missing, saturated = int(count[is_missing].sum()), int(count[is_saturated].sum())
        return cls(unique, total, missing, saturated)

    @property
    def measured(self) -> int:
        """How often the cycles are known."""
        return int(self.count.sum())

    @property
    def rates(self) -> F64:
        """(n,): share of each number of cycles."""
        rates: F64 = self.count / max(self.measured, 1)
        return rates

    @property
    def mean(self) -> float | None:
        """Average, None without cycles."""
        return float(self.cycles @ self.count) / self.measured if self.measured else None

    def percentile(self, percent: float) -> int | None:
        """The least number of cycles that so many per cent did not exceed; None without any."""
        if not self.measured:
            return None
        wanted = percent / 100 * self.measured
        return int(self.cycles[np.searchsorted(np.cumsum(self.count), wanted, side="left")])

    def modes(self) -> tuple[int, ...]:
        """Cycles at each hump, highest hump first.

        >>> cycles = np.array([78, 80, 81, 280, 290, 300], np.uint64)
        >>> Distribution.of(cycles, np.array([90, 210, 100, 30, 40, 30], np.uint64)).modes()
        (80, 290)
        """
        if not self.measured:
            return ()
        height = _density(self.cycles, self.count)
        peaks = _humps(height)
        return tuple(self._middle_of(peak) for peak in peaks[np.argsort(-height[peaks])].tolist())

    def _middle_of(self, peak: int) -> int:
        """Median of what was measured close to a peak of the density."""
        near = np.abs(_scale(self.cycles) - peak * _STEP) <= _WIDTH
        part = Distribution(self.cycles[near], self.count[near], 0, 0)
        return part.percentile(50) or round(float(_LINEAR * np.sinh(peak * _STEP)))


# Cycles are compared by ratio, small ones by difference: asinh(c / _LINEAR) is linear below
# _LINEAR and a logarithm above. Humps closer than about two _WIDTHs (a cycle, or a quarter)
# are one.
_LINEAR = 4.0
_STEP = 0.01
_WIDTH = 0.12
_LEAST_HUMP = 0.05
"""A hump must rise so far above the valleys beside it, as part of the highest."""
_NOISE = 2.0
"""And so many standard deviations of its own height."""


def _scale(cycles: U64) -> F64:
    scaled: F64 = np.arcsinh(cycles / _LINEAR)
    return scaled


def _density(cycles: U64, count: U64) -> F64:
    """Smoothed occurrences on the scale, in steps of _STEP; a lone hump is as high as its count."""
    margin = round(4 * _WIDTH / _STEP)
    place = np.rint(_scale(cycles) / _STEP).astype(np.int64)
    histogram = np.bincount(place, weights=count, minlength=int(place.max()) + margin)
    window = np.arange(-margin, margin + 1) * _STEP / _WIDTH
    smoothed: F64 = np.convolve(histogram, np.exp(-window * window / 2))[margin:-margin]
    return smoothed


def _humps(height: F64) -> I64:
    """Places of the humps that rise clearly above the valleys beside them."""
    padded = np.concatenate(([-1.0], height, [-1.0]))
    peaks = np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]))
    peaks = peaks[height[peaks] > 0]
    needed = np.maximum(_LEAST_HUMP * height.max(), _NOISE * np.sqrt(height[peaks]))
    top = height.max()
    rises = np.array([_rise(height, peak) for peak in peaks.tolist()])
    found: I64 = peaks[(rises >= needed) | (height[peaks] == top)]
    return found


def _rise(height: F64, peak: int) -> float:
    """How far a peak rises above the higher of the valleys towards higher ground on each side."""
    return float(height[peak] - max(_valley(height[:peak][::-1], height[peak]),
                                    _valley(height[peak + 1 :], height[peak])))  # fmt: skip


def _valley(side: F64, peak: float) -> float:
    """Lowest height before the first that is higher than the peak; 0 if there is no such height."""
    higher = np.flatnonzero(side > peak)
    if not len(higher):
        return 0.0
    return float(side[: higher[0]].min(initial=peak))
