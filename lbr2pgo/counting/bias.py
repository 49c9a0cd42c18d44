"""Stacks of a recorder that prefers some moments, or some branches for the ends of its stacks.

Wherever in a stack a branch stands, its share is the same, if stacks are windows on the run laid
down anywhere. Two faults leave different marks (A. Nowak, A. Yasin, A. Mendelson, W. Zwaenepoel,
"Establishing a base of trust with performance counters for enterprise workloads", USENIX ATC 2015,
tell of the first entry's):

* A branch sticks to an end: its share is wrong there alone. That entry is left out of all stacks.
* The event comes more often behind some branches: then what ran before them is too frequent as
  well, the less the longer before. Stacks count for less, or more, by how often the branch that
  they begin with does so, and how often it stands near their other end. Weights change what stands
  there, too, so they are found in rounds.

Both are corrected where they are no chance and come to enough to matter, in this order: what
sticks is left out before stacks are weighed by what they begin with then.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.walk import StackKind
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import F64, I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct, place_of, rows_by
from lbr2pgo.support.tables import end_to_end, table

SHORTEST = 4
"""Entries of stacks that are looked at: shorter ones have hardly anything between their ends."""
_SURE, _LIKELY = 5.0, 3.0
"""Standard deviations from which a branch's share is no chance, of thousands of branches neither;
and from which, where there is a bias, its stacks are weighed."""
_BIASED = 0.02
"""Part of an end's entries that are other branches than they should be, from which it matters."""
_PRIOR, _ROUNDS, _MOST = 20.0, 5, 16.0
"""Stacks to which a branch is taken to be unbiased beside those that were seen; rounds; and what
one may count for at most. In SQLite, with a tenth of its branches ten times as likely to be
sampled, priors of 5 to 100 and 3 to 30 rounds come to an overlap with the exact counts of 0.92 to
0.93, and without correction to 0.89."""
_ONE = 16
"""Bits of a weight behind its point."""
_OUTSIDE = np.uint64(np.iinfo(np.uint64).max)
"""In place of branches outside the image: their stacks have one weight."""


@table
class Ends:
    """Which branches stand where in stacks, and in how many (k,) of them; by placed address."""

    newest: U64
    second: U64
    inner: U64
    """Before the oldest one."""
    oldest: U64
    weight: U64


@dataclass(frozen=True, slots=True)
class Correction:
    """What is done against a bias."""

    drops_newest: bool = False
    drops_oldest: bool = False
    branch: U64 | None = None
    """(b,) ascending: those that stacks may begin with, None where all stacks count the same."""
    factor: U64 | None = None
    """(b,): what such stacks count for, in parts of 2**16."""

    @property
    def is_any(self) -> bool:
        """Whether anything is done."""
        return self.drops_newest or self.drops_oldest or self.branch is not None


def ends_of(batch: BranchStacks, spaces: I64, kinds: U8, mapping: AddressSpaces) -> Ends:
    """Of a batch's stacks of neighbours."""
    rows = neighbours(batch, spaces, kinds)
    first, past = batch.offsets[:-1][rows], batch.offsets[1:][rows]
    at = (first, first + 1, past - 2, past - 1)
    keys = [_branches(batch.entries[place, 0], spaces[rows], mapping) for place in at]
    (newest, second, inner, oldest), (weight,) = sum_by(keys, (batch.weight[rows],))
    return Ends(newest, second, inner, oldest, weight)


def neighbours(batch: BranchStacks, spaces: I64, kinds: U8, shortest: int = SHORTEST) -> I64:
    """Numbers of those counted stacks whose entries are neighbours, and as many as that."""
    long = np.diff(batch.offsets) >= shortest
    return np.flatnonzero((spaces >= 0) & (kinds == StackKind.CONSECUTIVE) & long)


def _branches(address: U64, spaces: I64, mapping: AddressSpaces) -> U64:
    """(n,): placed addresses of branches at run-time addresses."""
    image, inside = mapping.to_image(spaces, runtime_addresses(address))
    return np.where(inside, image, _OUTSIDE)


def correction(parts: Iterator[Ends]) -> Correction:
    """What to do, by all stacks of a recording."""
    columns = ("newest", "second", "inner", "oldest", "weight")
    newest, second, inner, oldest, count = end_to_end(parts, *columns)
    weight = count.astype(np.float64)
    branch = distinct(np.concatenate([newest, second, inner, oldest]))
    first, begin, end, last = (place_of(each, branch) for each in (newest, second, inner, oldest))
    size = len(branch)
    top, start, close, bottom = (
        np.bincount(each, weight, size).astype(np.float64) for each in (first, begin, end, last)
    )
    drops = _is_biased(top, close), _is_biased(bottom, close)
    if not (drops[0] and _is_biased(start, close)):
        return Correction(*drops)
    factor = _factors(begin, end, weight, _differ(start, close, _LIKELY))
    return Correction(*drops, branch, np.rint(factor * (1 << _ONE)).astype(np.uint64))


def _differ(one: F64, other: F64, deviations: float) -> Bools:
    """(b,): which counts of equal sums differ by more than chance."""
    differ: Bools = np.abs(one - other) > deviations * np.sqrt(np.maximum(one + other, 1))
    return differ


def _is_biased(one: F64, other: F64) -> bool:
    surplus = np.abs(one - other)[_differ(one, other, _SURE)].sum() / 2
    return bool(surplus > _BIASED * one.sum())


def _factors(begin: I64, end: I64, weight: F64, is_off: Bools) -> F64:
    """(b,): weights of stacks by the branch they begin with, so that as many end with it."""
    began = np.bincount(begin, weight, len(is_off))
    factor = np.ones(len(is_off))
    for _ in range(_ROUNDS):
        ended = np.bincount(end, weight * factor[begin], len(is_off))
        ended *= weight.sum() / ended.sum()
        factor = np.where(is_off, (ended + _PRIOR) / (began + _PRIOR), 1.0)
        factor = np.clip(factor, 1 / _MOST, _MOST)
    return factor


class Weigher:
    """Gives stacks their weights, in whole numbers.

    Of the stacks that begin with a branch, as many count as its factor says; each counts for what
    the running product, rounded down, grows by. So the order of stacks matters, and that of
    batches.
    """

    def __init__(self, known: Correction, mapping: AddressSpaces) -> None:
        self._branch, self._factor, self._mapping = known.branch, known.factor, mapping
        self._seen = np.zeros(0 if known.branch is None else len(known.branch), np.uint64)

    @property
    def weighs(self) -> bool:
        """Whether stacks count for more or less than they did."""
        return self._branch is not None

    def weighed(self, batch: BranchStacks, spaces: I64, kinds: U8) -> U64:
        """The weights (n,) of a batch's stacks."""
        if self._branch is None or self._factor is None:
            return batch.weight
        rows = neighbours(batch, spaces, kinds, SHORTEST - 1)  # the newest was left out
        entries = batch.entries[batch.offsets[:-1][rows], 0]
        newest = _branches(entries, spaces[rows], self._mapping)
        place = place_of(newest, self._branch)
        rows, place = rows[place >= 0], place[place >= 0]
        weight = batch.weight.copy()
        for branch, group in rows_by(place):
            after = self._seen[branch] + np.cumsum(batch.weight[rows[group]])
            marks = _product(np.append(self._seen[branch], after), self._factor[branch])
            weight[rows[group]] = np.diff(marks)
            self._seen[branch] = after[-1]
        return weight


def _product(count: U64, factor: U64) -> U64:
    """Of counts (n,) and a factor in parts of 2**16, rounded down."""
    bits = np.uint64(_ONE)
    low = count & np.uint64((1 << _ONE) - 1)
    product: U64 = (count >> bits) * factor + ((low * factor) >> bits)
    return product
