"""Phases: spans of time that differ by which functions ran in them.

Time is cut where the slices between two cuts are best told by one distribution over functions
each: optimal partitioning (B. Jackson et al., An Algorithm for Optimal Partitioning of Data on an
Interval, IEEE Signal Processing Letters 12, 2005), with the multinomial likelihood, of which each
cut has to be worth a further distribution (G. Schwarz, Estimating the Dimension of a Model, Annals
of Statistics 6, 1978). What is significant need not matter: neighbours are one phase if the
divergence of their distributions (J. Lin, Divergence Measures Based on the Shannon Entropy, IEEE
Transactions on Information Theory 37, 1991) is below `LEAST_DIVERGENCE`, or one of them has hardly
any samples, or is the one slice in which a phase gives way to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lbr2pgo.counting.activity import Activity
from lbr2pgo.support.arrays import F64, Bools
from lbr2pgo.support.dataclass import dataclass

LEAST_DIVERGENCE = 0.15
"""Bits, from 0 (the same) to 1 (no function in common): of two phases of which the one spends
three samples in ten in functions that the other has none of, it is 0.17."""
LEAST_SHARE = 0.02
"""Of all samples, that a phase has."""
_LEADERS = 3
"""Functions that a phase is called by, if each has a tenth of its samples."""
_LEAST_LEADER = 0.1
_PER_FUNCTION = 14
"""So many samples, times the logarithm of all, are needed for each function that is told apart:
then a cut needs 0.05 bits a sample to be worth it, however many samples there are."""
_FUNCTIONS = 4, 128
"""How many are told apart, at least and at most."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A span of time."""

    slices: tuple[int, int]
    """The first one of `Activity`, and the first one behind."""
    time: tuple[int, int]
    """Nanoseconds, both included, as `SampleChoice.time`."""
    samples: int
    leaders: tuple[tuple[int, float], ...]
    """Columns of `Activity` that lead, with their shares of its samples."""


def phases_of(activity: Activity) -> tuple[Phase, ...]:
    """All phases, one at least; they follow each other from the first sample to the last one."""
    counts = activity.samples.astype(np.float64)
    cuts = _merged(counts, _cuts(_leading(counts)))
    return tuple(_phase(activity, counts, *ends) for ends in pairwise(cuts))


def _phase(activity: Activity, counts: F64, first: int, past: int) -> Phase:
    own = counts[first:past].sum(0)
    shares = own / own.sum()
    leaders = np.argsort(-shares, kind="stable")[:_LEADERS]
    is_last = past == len(counts)
    end = activity.last if is_last else activity.begin(past) - 1
    return Phase(
        (first, past),
        (activity.begin(first), end),
        int(activity.samples[first:past].sum()),
        tuple(
            (each, float(shares[each]))
            for rank, each in enumerate(leaders.tolist())
            if rank == 0 or shares[each] >= _LEAST_LEADER
        ),
    )


def _leading(counts: F64) -> F64:
    """As many functions as the samples can tell apart, the hottest ones; the others as one."""
    total = max(counts.sum(), 2.0)
    wanted = np.clip(int(total / (_PER_FUNCTION * np.log(total))), *_FUNCTIONS)
    order = np.argsort(-counts.sum(0), kind="stable")
    rest = counts[:, order[wanted:]].sum(1, keepdims=True)
    return np.hstack([counts[:, order[:wanted]], rest])


def _bits(counts: F64) -> F64:
    """Bits that each of the last axis's distributions takes to tell its samples: n times entropy.

    >>> _bits(np.array([[1.0, 1.0], [4.0, 0.0]])).tolist()
    [2.0, 0.0]
    """
    total = counts.sum(-1)
    found: F64 = _x_log(total) - _x_log(counts).sum(-1)
    return found


def _x_log(values: F64) -> F64:
    found: F64 = values * np.log2(np.where(values > 0, values, 1.0))
    return found


def _cuts(counts: F64) -> list[int]:
    """Where spans begin (the first at 0), and the end: those that tell all in the fewest bits.

    >>> _cuts(np.array([[90.0, 10], [90, 10], [5, 95], [5, 95]]))
    [0, 2, 4]
    >>> _cuts(np.array([[90.0, 10], [88, 12], [91, 9], [90, 10]]))
    [0, 4]
    """
    size, columns = counts.shape
    price = (columns + 1) / 2 * np.log2(max(counts.sum(), 2.0))
    so_far = np.vstack([np.zeros((1, columns)), counts.cumsum(0)])
    best, back = np.zeros(size + 1), np.zeros(size + 1, np.int64)
    for end in range(1, size + 1):
        bits = best[:end] + _bits(so_far[end] - so_far[:end]) + price
        # Where a gap without samples can stand on either side, the later span begins behind it.
        back[end] = end - 1 - int(np.argmin(bits[::-1]))
        best[end] = bits[back[end]]
    cuts = [size]
    while cuts[-1]:
        cuts.append(int(back[cuts[-1]]))
    return cuts[::-1]


def _merged(counts: F64, cuts: Sequence[int]) -> list[int]:
    """The cuts between spans that differ and have samples, the most alike neighbours joined first.

    >>> _merged(np.array([[90.0, 10], [80, 20], [5, 95]]), [0, 1, 2, 3])
    [0, 2, 3]
    >>> _merged(np.array([[90.0, 10], [90, 10], [70, 30], [5, 95], [5, 95]]), [0, 2, 3, 5])
    [0, 3, 5]
    """
    cuts = list(cuts)
    while len(cuts) > 2:
        spans = np.array([counts[a:b].sum(0) for a, b in pairwise(cuts)])
        apart = _divergence(spans[:-1], spans[1:])
        few = spans.sum(1) < LEAST_SHARE * counts.sum()
        few[1:-1] |= (np.diff(cuts)[1:-1] == 1) & _are_mixed(spans)
        joins = (apart < LEAST_DIVERGENCE) | few[:-1] | few[1:]
        if not joins.any():
            break
        del cuts[1 + int(np.argmin(np.where(joins, apart, np.inf)))]
    return cuts


def _are_mixed(spans: F64) -> Bools:
    """Which distributions (n, k), but the first and the last, are mixtures of those beside them.

    >>> _are_mixed(np.array([[9.0, 1, 0], [9, 5, 0], [1, 9, 0], [0, 0, 9], [1, 9, 0]])).tolist()
    [True, False, False]
    """
    part = np.linspace(0, 1, 11)[:, None, None]
    shares = spans / np.maximum(spans.sum(1, keepdims=True), 1.0)
    mixtures = part * shares[:-2] + (1 - part) * shares[2:]
    apart = _divergence(mixtures, np.broadcast_to(shares[1:-1], mixtures.shape))
    found: Bools = apart.min(0) < LEAST_DIVERGENCE
    return found


def _divergence(one: F64, other: F64) -> F64:
    """Jensen and Shannon's, in bits, of distributions (…, k) in pairs; 0 of an empty one.

    >>> _divergence(np.array([[9.0, 0], [1, 1]]), np.array([[0, 2.0], [5, 5]])).tolist()
    [1.0, 0.0]
    """
    shares = [each / np.maximum(each.sum(-1, keepdims=True), 1.0) for each in (one, other)]
    found: F64 = _bits((shares[0] + shares[1]) / 2) - (_bits(shares[0]) + _bits(shares[1])) / 2
    is_empty = (one.sum(-1) == 0) | (other.sum(-1) == 0)
    return np.where(is_empty, 0.0, found)
