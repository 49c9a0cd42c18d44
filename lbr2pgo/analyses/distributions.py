"""Distributions of cycles: shares, percentiles, robust averages and modes."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np

from lbr2pgo.analyses.modes import FEWEST, groups, mode_bounds, near
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.model.branch_stacks import MISSING, SATURATED
from lbr2pgo.support.arrays import F64, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import table

Measured = TypeVar("Measured", int, I64)

_LEFT_OUT = 100
"""One of so many values is left out of a trimmed mean."""


def kept_of(measured: Measured) -> Measured:
    """How many of so many values, or of each of so many (n,), a trimmed mean keeps."""
    return measured - measured // _LEFT_OUT


@dataclass(frozen=True, slots=True)
class Mode:
    """One of the places where values gather, or several that lie close together."""

    cycles: int
    """The median of the values around it."""
    share: float
    """Of all measured values, those near it."""
    mispredicted: float | None = None
    """Share of those with a mispredicted branch at an end or in between; None where unknown."""
    places: tuple[int, int] | None = None
    """Of several places, from where to where 98 % of the values are."""

    @property
    def at(self) -> str:
        """Where it lies."""
        return f"{self.cycles}" if self.places is None else "{} to {}".format(*self.places)

    def __str__(self) -> str:
        missed = "" if self.mispredicted is None else f", {self.mispredicted:.0%} mispredicted"
        return f"{self.at} ({self.share:.0%}{missed})"


@table
class Distribution:
    """How often something took how many cycles."""

    cycles: U64
    """(n,), ascending, without missing and saturated ones."""
    count: U64
    """(n,)"""
    mispredicted: U64
    """(n,): of how many a branch at an end or in between was mispredicted."""
    predicted: U64
    """(n,): of how many none was; of the rest that is not known."""
    missing: int
    saturated: int

    @classmethod
    def of(
        cls,
        cycles: U64,
        count: U64,
        mispredicted: U64 | None = None,
        prediction_unknown: U64 | None = None,
    ) -> Distribution:
        """From rows in any order, in which cycles may repeat; by default nothing is predicted."""
        missed = np.zeros_like(count) if mispredicted is None else mispredicted
        silent = count - missed if prediction_unknown is None else prediction_unknown
        is_missing, is_saturated = cycles == MISSING, cycles == SATURATED
        measured = ~(is_missing | is_saturated)
        predicted = count - np.minimum(missed + silent, count)
        (unique,), (total, missed, predicted) = sum_by(
            (cycles[measured],), (count[measured], missed[measured], predicted[measured])
        )
        missing, saturated = int(count[is_missing].sum()), int(count[is_saturated].sum())
        return cls(unique, total, missed, predicted, missing, saturated)

    @cached_property
    def measured(self) -> int:
        """How often the cycles are known."""
        return int(self.count.sum())

    @property
    def rates(self) -> F64:
        """(n,): share of each number of cycles."""
        rates: F64 = self.count / max(self.measured, 1)
        return rates

    @property
    def misprediction_rate(self) -> float | None:
        """Of the measured ones of which it is known; None where it is of none."""
        missed, predicted = int(self.mispredicted.sum()), int(self.predicted.sum())
        return missed / (missed + predicted) if missed + predicted else None

    @property
    def mean(self) -> float | None:
        """Average, None without cycles."""
        return float(self.cycles @ self.count) / self.measured if self.measured else None

    @cached_property
    def _until(self) -> U64:
        """(n,): how many did not take longer than each number of cycles."""
        return self.count.cumsum()

    def percentile(self, percent: float) -> int | None:
        """The least number of cycles that so many per cent did not exceed; None without any."""
        if not self.measured:
            return None
        wanted = percent / 100 * self.measured
        return int(self.cycles[self._until.searchsorted(wanted)])

    @cached_property
    def trimmed_mean(self) -> float | None:
        """Average of all but the slowest hundredth, rounded down: an interrupt falls into some run.

        None without cycles.

        >>> seen = Distribution.of(np.array([20, 50_000], np.uint64), np.array([995, 5], np.uint64))
        >>> seen.mean, seen.trimmed_mean
        (269.9, 20.0)
        """
        if not self.measured:
            return None
        part = np.diff(np.minimum(self._until, self._kept), prepend=np.uint64(0))
        return float(self.cycles.astype(np.float64) @ part) / self._kept

    @property
    def _kept(self) -> int:
        return kept_of(self.measured)

    @property
    def left_out(self) -> float | None:
        """Share of all cycles in what the trimmed mean leaves out; None without cycles."""
        mean, trimmed = self.mean, self.trimmed_mean
        if mean is None or trimmed is None:
            return None
        return max(0.0, 1 - trimmed * self._kept / (mean * self.measured)) if mean else 0.0

    def modes(self) -> tuple[Mode, ...]:
        """Where cycles gather, the largest share first; nothing where too few were measured.

        >>> cycles = np.array([78, 80, 81, 280, 290, 300], np.uint64)
        >>> found = Distribution.of(cycles, np.array([90, 210, 100, 30, 40, 30], np.uint64)).modes()
        >>> [(mode.cycles, mode.share) for mode in found]
        [(80, 0.8), (290, 0.2)]
        """
        return self._modes

    @cached_property
    def _modes(self) -> tuple[Mode, ...]:
        if self.measured < FEWEST:
            return ()
        starts = np.searchsorted(self.cycles, mode_bounds(self.cycles, self.count), side="right")
        bounds = [0, *starts.tolist(), len(self.cycles)]
        medians = [self._part(*pair).percentile(50) or 0 for pair in pairwise(bounds)]
        modes = [
            self._mode(bounds[first], bounds[past], is_group=past - first > 1)
            for first, past in pairwise([*groups(medians), len(medians)])
        ]
        return tuple(sorted(modes, key=lambda mode: (-mode.share, mode.cycles)))

    def _mode(self, first: int, past: int, *, is_group: bool) -> Mode:
        """Of these rows, which may be a group of modes."""
        part = self._part(first, past)
        median = part.percentile(50) or 0
        places = (part.percentile(1) or 0, part.percentile(99) or 0) if is_group else None
        if not is_group:  # too few may lie elsewhere to be a mode
            part = part._taken(near(part.cycles, median))
        return Mode(median, part.measured / self.measured, part.misprediction_rate, places)

    @property
    def told(self) -> str:
        """The modes or, where too few were measured to have any, the values.

        >>> Distribution.of(np.array([80, 300], np.uint64), np.array([2, 1], np.uint64)).told
        '80 (2), 300'
        """
        if self.measured >= FEWEST:
            return " · ".join(f"{mode.at} {100 * mode.share:.0f} %" for mode in self.modes())
        seen = zip(self.cycles.tolist(), self.count.tolist(), strict=True)
        return ", ".join(f"{value} ({n})" if n > 1 else f"{value}" for value, n in seen)

    @property
    def told_mispredicted(self) -> str | None:
        """The share mispredicted of each of `modes`, in their order; None where none is known."""
        shares = [mode.mispredicted for mode in self.modes()]
        if all(share is None for share in shares):
            return None
        return " · ".join("?" if each is None else f"{100 * each:.0f} %" for each in shares)

    def _part(self, first: int, past: int) -> Distribution:
        if past - first == len(self.cycles):
            return self
        return self._taken(slice(first, past))

    def _taken(self, rows: slice | Bools) -> Distribution:
        return Distribution(
            self.cycles[rows],
            self.count[rows],
            self.mispredicted[rows],
            self.predicted[rows],
            missing=0,
            saturated=0,
        )
