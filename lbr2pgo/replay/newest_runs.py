"""The fall-throughs behind the newest branches of stacks, which no later branch ends.

A stack of N branches shows N - 1 fall-throughs: that behind its newest branch was still running. So
fall-throughs, and with them conditional branches that were not taken, are counted too seldom, by
one in N. Here these branches share the ends of all recorded fall-throughs from their target.
(BOLT's pull request 145258, --impute-trace-fall-through, takes the average of those of the same
branch; their shares come as near to SQLite's exact counts as that branch's own, which are fewer.)

>>> import numpy as np
>>> from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, aggregate
>>> rows = [(1, 9, 20, 6), (2, 9, 30, 3), (1, 9, None, 4)]
>>> from_, to, end, count = np.array([(a, b, c or 0, n) for a, b, c, n in rows], np.uint64).T
>>> known = np.array([BRANCH | FROM | TO | (END if row[2] else 0) for row in rows], np.uint8)
>>> for row in impute(aggregate(from_, to, end, known, count, 0 * count)).rows():
...     print(row)
0x1 -> 0x9, straight on to 0x14: 9, mispredicted 0
0x1 -> 0x9, straight on to 0x1e: 1, mispredicted 0
0x2 -> 0x9, straight on to 0x1e: 3, mispredicted 0
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BRANCH, END, TO, BranchCounts, Runs, aggregate
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import distinct, place_of
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.sums import LARGEST, sums_at

CORRECTED = "runs_corrected"
"""Tally of the fall-throughs that were added."""


def impute(counts: BranchCounts) -> BranchCounts:
    """The counts with ends for branches that had none; how many got one is tallied.

    From each place as many fall-throughs start as branches arrive there, and no more: in inputs
    that hold branches and fall-throughs apart, no branch has an end, and none is missing. Branches
    keep their counts. Where no fall-through starts, none is added.
    """
    runs = counts.runs()
    open_ = np.flatnonzero(counts.has(BRANCH | TO) & ~counts.has(END))
    open_ = open_[np.argsort(counts.to[open_], kind="stable")]
    amount = _missing(counts, runs, open_)
    row, count = open_[amount > 0], amount[amount > 0]
    first = np.searchsorted(runs.start, counts.to[row], side="left")
    sizes = np.searchsorted(runs.start, counts.to[row], side="right") - first
    run = numbers_in(first, first + sizes)
    columns = {name: getattr(counts, name).copy() for name in _COLUMNS}
    made = {name: np.repeat(columns[name][row], sizes) for name in ("from_", "to", "known")}
    made |= {"end": runs.end[run], "count": _apportioned(count, runs.count[run], sizes)}
    made["known"] |= np.uint8(END)
    for name in ("mispredicted", "prediction_unknown"):
        # By the shares themselves: none is mispredicted more often than it was taken.
        moved = _part(columns[name][row], count, columns["count"][row])
        made[name] = _apportioned(moved, made["count"], sizes)
        columns[name][row] -= moved
    columns["count"][row] -= count
    return aggregate(
        *(np.concatenate([columns[name], made[name]]) for name in _COLUMNS),
        build_id=counts.build_id,
        tallies=waterfall.merge(counts.tallies, {CORRECTED: int(count.sum())}),
    )


_COLUMNS = ("from_", "to", "end", "known", "count", "mispredicted", "prediction_unknown")


def _missing(counts: BranchCounts, runs: Runs, open_: I64) -> U64:
    """How often each branch without an end, ordered by target, lacks a fall-through."""
    target = distinct(counts.to[open_])
    if not len(target):
        return np.zeros(0, np.uint64)
    arrived, started = (
        _sums_at(target, places, some)
        for places, some in (
            (counts.to[counts.has(BRANCH | TO)], counts.count[counts.has(BRANCH | TO)]),
            (runs.start, runs.count),
        )
    )
    missing = np.where(started > 0, np.maximum(arrived, started) - started, np.uint64(0))
    sizes = np.diff(np.searchsorted(counts.to[open_], np.append(target, np.uint64(LARGEST))))
    return _apportioned(missing, counts.count[open_], sizes)


def _sums_at(places: PlacedAddresses, at: PlacedAddresses, counts: U64) -> U64:
    """The sums of counts at each of some ascending places."""
    return sums_at(place_of(at, places), counts, len(places))


def _part(totals: U64, some: U64, all_: U64) -> U64:
    """Of totals (n,) the part that belongs to some of all; whole numbers."""
    part: U64 = np.rint(totals * (some / all_)).astype(np.uint64)
    return np.minimum(part, np.minimum(totals, some))


def _apportioned(totals: U64, weights: U64, sizes: I64) -> U64:
    """Whole shares (m,) of each total (k,), by the weights (m,) of its group, that add up to it.

    Running sums are rounded, so every share is within one of its exact part.
    """
    ends = np.cumsum(sizes)
    running = np.concatenate([[0.0], np.cumsum(weights.astype(np.float64))])
    before, whole = running[ends - sizes], running[ends] - running[ends - sizes]
    part = (running[1:] - np.repeat(before, sizes)) / np.repeat(whole, sizes)
    upto = np.rint(np.repeat(totals, sizes) * part).astype(np.uint64)
    upto[ends - 1] = totals
    shares: U64 = np.diff(upto, prepend=np.uint64(0))
    starts = (ends - sizes)[1:]
    shares[starts] = upto[starts]
    return shares
