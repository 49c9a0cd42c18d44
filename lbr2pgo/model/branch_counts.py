"""`BranchCounts`: how often each branch and each fall-through of one image was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from lbr2pgo.native import bits
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.distinct import begins, order_of
from lbr2pgo.support.sums import exact_sum, refuse_too_many, sums_of_groups
from lbr2pgo.support.tables import Tabular, ascending, is_ascending, table, taken

# Bits of `BranchCounts.known`: which parts of a row are facts.
FROM = bits.FROM
"""`from_` is an address of the image."""
TO = bits.TO
"""`to` is an address of the image."""
END = bits.END
"""`end` is known: execution ran straight on from `to` up to the instruction at `end`."""
BRANCH = bits.BRANCH
"""A taken branch was seen. Without FROM it came from outside the image (or from an unknown
place); without TO it went outside. A row without this bit is a bare fall-through."""
RETURN = bits.RETURN
"""The branch, seen or not, is known to be a return. Where it is not in the image, only the input
can tell (BOLT's `R` and `r`)."""
OUTSIDE = bits.OUTSIDE
"""A bare fall-through's branch is known to come from outside the image (BOLT's `f`)."""


@table
class BranchCounts(Tabular):
    """Traces of one image: a branch, and how far execution ran straight on from its target.

    Columns of equal length n, in placed addresses. Rows are unique by (from_, to, end, known) and
    sorted by it, so equal counts are equal arrays; where `known` does not vouch for an address,
    it is 0. Build with `aggregate`.
    """

    from_: PlacedAddresses
    to: PlacedAddresses
    end: PlacedAddresses
    known: U8
    count: U64
    mispredicted: U64
    prediction_unknown: U64
    """How often nothing told whether the branch was predicted; the rest was."""
    build_id: str | None = None
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Steps and losses on the way here (see `waterfall`), added up when counts are merged."""

    def __post_init__(self) -> None:
        ascending(self, "from_", "to", "end", "known")

    def __repr__(self) -> str:
        return f"<BranchCounts: {len(self):,} traces of {self.branch_total():,} branches>"

    def has(self, bits: int) -> Bools:
        """(n,): whether all of these `known` bits are set."""
        vouched: Bools = self.known & bits == bits
        return vouched

    def branch_total(self) -> int:
        """How many taken branches there are."""
        return exact_sum(self.count[self.has(BRANCH)])

    def branches(self) -> Branches:
        """Taken branches inside the image or across its border, summed over `end`."""
        rows = self.has(BRANCH)
        known = self.known[rows] & (FROM | TO)
        keys, sums = sum_by(
            (self.from_[rows], self.to[rows], known.astype(np.uint64)),
            (self.count[rows], self.mispredicted[rows], self.prediction_unknown[rows]),
        )
        from_, to = map(placed_addresses, keys[:2])
        nowhere = np.zeros(len(from_), np.int64)
        return Branches(from_, to, keys[2].astype(np.uint8), nowhere, *sums)

    def runs(self) -> Runs:
        """Fall-through ranges, summed over `from_`."""
        rows = self.has(TO | END)
        keys, sums = sum_by((self.to[rows], self.end[rows]), (self.count[rows],))
        return Runs(*map(placed_addresses, keys), *sums)

    @repeatable
    def rows(self) -> Iterator[str]:
        """One line of text a row, for people."""
        for i in range(len(self)):
            yield _row_text(self, i)


@table
class Branches(Tabular):
    """Taken branches, unique by (from_, to, known, file), sorted by it."""

    from_: PlacedAddresses
    to: PlacedAddresses
    known: U8
    """FROM and TO: which ends are in the image; the others are 0."""
    file: I64
    """Where an end outside is, an index into `Borders.files`; 0 where nothing tells."""
    count: U64
    mispredicted: U64
    prediction_unknown: U64

    def take(self, rows: Bools) -> Branches:
        """Some of the rows."""
        return taken(self, rows)

    @property
    def says_predictions(self) -> bool:
        """Whether mispredicted branches are told from others at all."""
        return bool((self.count > self.prediction_unknown).any())


@table
class Runs(Tabular):
    """Fall-through ranges, closed on the starts of their first and last instruction."""

    start: PlacedAddresses
    end: PlacedAddresses
    count: U64


def _row_text(counts: BranchCounts, i: int) -> str:
    known = int(counts.known[i])
    source = f"{counts.from_[i]:#x}" if known & FROM else "outside"
    target = f"{counts.to[i]:#x}" if known & TO else "outside"
    end = f"straight on to {counts.end[i]:#x}" if known & END else "end unknown"
    if not known & BRANCH:
        return f"from {target} {end}: {counts.count[i]}"
    return f"{source} -> {target}, {end}: {counts.count[i]}, mispredicted {counts.mispredicted[i]}"


def sum_by(keys: Sequence[U64], values: Sequence[U64]) -> tuple[tuple[U64, ...], tuple[U64, ...]]:
    """Group rows by their keys: unique keys in ascending order, and the sums of their values.

    Sums end at 2**64 - 1.
    """
    if is_ascending(*keys):  # as saved counts are
        return tuple(keys), tuple(values)
    if not is_ascending(*keys, repeats=True):  # as branches of counts are
        order = order_of(*keys)
        keys, values = ([column[order] for column in columns] for columns in (keys, values))
    starts = np.flatnonzero(begins(*keys))
    sums = tuple(sums_of_groups(value, starts) for value in values)
    return tuple(key[starts] for key in keys), sums


def aggregate(
    from_: PlacedAddresses,
    to: PlacedAddresses,
    end: PlacedAddresses,
    known: U8,
    count: U64,
    mispredicted: U64,
    prediction_unknown: U64 | None = None,
    *,
    build_id: str | None = None,
    tallies: Mapping[str, int] | None = None,
) -> BranchCounts:
    """Build `BranchCounts` from rows in any order; equal rows add up, unknown addresses become 0.

    Columns of equal length; without `prediction_unknown` all predictions are known. Rows with a
    zero count are dropped. Raises TooManyError where counts or mispredictions add up to 2**63.
    """
    unknown = np.zeros_like(count) if prediction_unknown is None else prediction_unknown
    refuse_too_many(count, mispredicted, unknown)
    counted = count > 0
    rows = slice(None) if counted.all() else counted
    bits = known[rows]
    columns = [
        np.where(bits & bit != 0, column[rows], np.uint64(0))
        for column, bit in ((from_, FROM), (to, TO), (end, END))
    ]
    values = (count[rows], mispredicted[rows], unknown[rows])
    keys, sums = sum_by((*columns, bits.astype(np.uint64)), values)
    return BranchCounts(
        from_=placed_addresses(keys[0]),
        to=placed_addresses(keys[1]),
        end=placed_addresses(keys[2]),
        known=keys[3].astype(np.uint8),
        count=sums[0],
        mispredicted=sums[1],
        prediction_unknown=sums[2],
        build_id=build_id,
        tallies=dict(tallies or {}),
    )


def no_counts(build_id: str | None) -> BranchCounts:
    """Nothing, of a build."""
    none = np.zeros(0, np.uint64)
    at = placed_addresses(none)
    return aggregate(at, at, at, none.astype(np.uint8), none, none, build_id=build_id)


def without_runs(counts: BranchCounts) -> BranchCounts:
    """The branches alone, and nothing of what ran between them."""
    known = np.where(counts.has(BRANCH), counts.known & ~np.uint8(END), 0).astype(np.uint8)
    count = np.where(counts.has(BRANCH), counts.count, np.uint64(0))
    return aggregate(
        counts.from_, counts.to, counts.end, known, count, counts.mispredicted,
        counts.prediction_unknown, build_id=counts.build_id, tallies=counts.tallies,
    )  # fmt: skip


def with_unknown_predictions(counts: BranchCounts) -> BranchCounts:
    """Counts of an input that has no word for "not known".

    Where it has no misprediction at all, it knows no prediction.
    """
    if counts.mispredicted.any():
        return counts
    unknown = np.where(counts.has(BRANCH), counts.count, np.uint64(0))
    return replace(counts, prediction_unknown=unknown)
