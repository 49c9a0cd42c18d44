"""The modes of a distribution of cycles: where values gather, as far as chance does not explain it.

Occurrences are smoothed with kernels of several widths and divided by those widths, which gives a
density per cycle: a flat distribution stays flat, however wide a kernel grows with its place. At
each width, the valley that separates two neighbouring modes least is given up first, until all that
are left are deeper than chance makes them; the width that leaves most modes says where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import ceil, sqrt

import numpy as np

from lbr2pgo.support.arrays import F64, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass

# Places are asinh(cycles / _LINEAR): a kernel is some cycles wide below _LINEAR, and some part of
# the place above.
_LINEAR = 60.0
_STEP = 0.002
_WIDTHS = (0.12, 0.06, 0.03, 0.015, 0.008)
"""Standard deviations of the kernels. The narrowest is half a cycle, or 0.8 %."""
_REACH = 4
"""Standard deviations after which a kernel ends."""
_CERTAIN = 5.0
"""Standard deviations that a valley must be deeper than chance makes it. Of 200 flat and log-normal
samples of 200 to 20,000 values none has a second mode then (tests/analyses/test_modes.py)."""
_DEEPEST_IGNORED = 0.8
"""A valley of so large a part of the lower mode beside it is none, however many were counted."""
_LEAST_SHARE = 0.01
"""Of all values; fewer are no mode."""
FEWEST = ceil(2 * _CERTAIN**2 * sqrt(0.5))
"""Among fewer values no second mode is certain, however far apart they lie."""
_MANY = 3
"""From more modes on, those that lie close together are one group."""
_CLOSE = 0.5
"""So close, as a part of the widest gap between two."""


@dataclass(frozen=True, slots=True)
class Density:
    """Occurrences per cycle on a grid of n places."""

    first: int
    """The first place."""
    per_cycle: F64
    """All (n,)."""
    seen: F64
    """Occurrences under the kernel there, a lone one with its whole number."""
    width: F64
    """Cycles that one standard deviation of the kernel covers there."""

    def cycles(self, rows: I64) -> F64:
        """Cycles at places, by their numbers in the grid."""
        cycles: F64 = _LINEAR * np.sinh((self.first + rows) * _STEP)
        return cycles

    def depth(self, mode: int, valley: int) -> float:
        """How much deeper a valley is than chance would make it, in standard deviations."""
        scale = self.width[mode] / self.width[valley]
        expected, found = self.seen[mode], self.seen[valley] * scale
        if found > _DEEPEST_IGNORED * expected:
            return 0.0
        # The squares of a Gaussian kernel add up to 1/sqrt(2) of what the kernel does.
        variance = (expected + found * scale) * np.sqrt(0.5)
        return float((expected - found) / np.sqrt(variance))

    def between(self, left: int, valley: int, right: int) -> float:
        """How much deeper a valley is than chance would make it beside two modes."""
        return min(self.depth(left, valley), self.depth(right, valley))


def mode_bounds(cycles: U64, count: U64) -> F64:
    """Cycles of the valleys between neighbouring modes, ascending: m - 1 of m modes.

    cycles (n,) ascending, count (n,): how often each was seen.
    """
    best: F64 = np.empty(0)
    place = np.rint(np.arcsinh(cycles / _LINEAR) / _STEP).astype(np.int64)
    for width in _WIDTHS:
        if len(best) == len(cycles) - 1:
            break  # there are no more modes than values
        density = _density(place, count, width)
        found = density.cycles(_valleys(density))
        if len(found) > len(best):
            found = _without_small(found, cycles, count)
        if len(found) > len(best):
            best = found
    return best


def groups(medians: Sequence[float]) -> list[int]:
    """Where groups of modes begin, by the modes' ascending medians; few are a group each.

    >>> groups([1, 2, 3, 4, 6, 24, 32]), groups([50, 60, 300]), groups([10, 20, 30, 40])
    ([0, 5], [0, 1, 2], [0, 1, 2, 3])
    """
    if len(medians) <= _MANY:
        return list(range(len(medians)))
    gaps = [high - low for low, high in pairwise(medians)]
    far = [row for row, gap in enumerate(gaps, 1) if gap >= _CLOSE * max(gaps)]
    return [0, *far]


def near(cycles: U64, mode: int) -> Bools:
    """(n,): which of these are so close to a mode that the widest kernel there reaches them."""
    at = np.arcsinh(cycles / _LINEAR)
    found: Bools = abs(at - np.arcsinh(mode / _LINEAR)) <= _REACH * _WIDTHS[0]
    return found


def _density(place: I64, count: U64, width: float) -> Density:
    kernel = _kernel(width)
    margin = len(kernel) // 2
    first = int(place[0]) - margin
    histogram = np.bincount(place - first, weights=count, minlength=int(place[-1]) - first + margin)
    seen = np.convolve(histogram, kernel)[margin:-margin]
    covered = _LINEAR * np.cosh((first + np.arange(len(seen))) * _STEP) * width
    return Density(first, seen / covered, seen, covered)


@cache
def _kernel(width: float) -> F64:
    margin = round(_REACH * width / _STEP)
    window = np.arange(-margin, margin + 1) * _STEP / width
    kernel: F64 = np.exp(-window * window / 2)
    return kernel


def _valleys(density: Density) -> I64:
    """Places of the valleys that certainly separate two modes."""
    height = np.concatenate(([-1.0], density.per_cycle, [-1.0]))
    modes = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])).tolist()
    valleys = [_lowest(density, *pair) for pair in pairwise(modes)]
    depths = [density.between(*each) for each in zip(modes, valleys, modes[1:], strict=False)]
    while depths and min(depths) < _CERTAIN:
        least = depths.index(min(depths))
        _give_up(density, modes, valleys, depths, least)
    return np.array(valleys, np.int64)


def _give_up(
    density: Density, modes: list[int], valleys: list[int], depths: list[float], least: int
) -> None:
    """Make one mode of the two beside a valley."""
    left, right = modes[least], modes[least + 1]
    lower = least if density.per_cycle[left] < density.per_cycle[right] else least + 1
    del modes[lower], valleys[least], depths[least]
    if 0 < lower < len(modes):
        first, past = modes[lower - 1 : lower + 1]
        valleys[lower - 1] = _lowest(density, first, past)
        depths[lower - 1] = density.between(first, valleys[lower - 1], past)


def _lowest(density: Density, first: int, last: int) -> int:
    return first + int(np.argmin(density.per_cycle[first : last + 1]))


def _without_small(bounds: F64, cycles: U64, count: U64) -> F64:
    """The bounds without those of modes that hold too few values."""
    kept, before = bounds, np.append(0, np.cumsum(count))
    while len(kept):
        share = np.diff(before[_starts(kept, cycles)], append=before[-1]) / before[-1]
        least = int(np.argmin(share))
        if share[least] >= _LEAST_SHARE:
            break
        kept = np.delete(kept, min(least, len(kept) - 1))
    return kept


def _starts(bounds: F64, cycles: U64) -> I64:
    """Row of the first value of each mode."""
    starts: I64 = np.append(0, np.searchsorted(cycles, bounds, side="right"))
    return starts
