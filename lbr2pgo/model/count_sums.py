"""Counts of many files added up, build by build.

Sums are exact and the same in whatever order counts come, so adding is associative and
commutative; memory grows with distinct traces only. A file may weigh more or less than others, as
one host of ten that was sampled. What weights make of the counts is rounded once, in the sum:

>>> import numpy as np
>>> from fractions import Fraction
>>> from lbr2pgo.model.branch_counts import BRANCH, FROM, TO, aggregate
>>> from lbr2pgo.support.addresses import placed_addresses
>>> def host(count):
...     known, rest = np.array([FROM | TO | BRANCH], np.uint8), np.zeros(1, np.uint64)
...     at = placed_addresses(np.array([16], np.uint64))
...     return aggregate(at, at, at, known, np.array([count], np.uint64), rest, build_id="aa")
>>> sums = CountSums()
>>> sums.add(host(3), Fraction(1, 2))
>>> sums.add(host(5), Fraction(1, 2))
>>> for counts in sums.builds():
...     print(counts.build_id, *counts.rows())
aa 0x10 -> 0x10, end unknown: 4, mispredicted 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts, aggregate
from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import U8, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import LIMIT, TooManyError, exact_sum

if TYPE_CHECKING:
    from fractions import Fraction  # not worth loading for sums without weights

    Weight = Fraction | int


def merge(counts: Sequence[BranchCounts]) -> BranchCounts:
    """Add up counts of one image, in any order; exact and associative.

    Raises ValueError if they name different builds.
    """
    build_ids = {c.build_id for c in counts if c.build_id}
    if len(build_ids) > 1:
        raise ValueError(f"counts of different builds: {', '.join(sorted(build_ids))}")
    if len(counts) == 1:
        return replace(counts[0], tallies=dict(counts[0].tallies))
    sums = _BuildSums(next(iter(build_ids), None))
    for each in counts:
        sums.add(each, 1)
    return sums.total()


class CountSums:
    """Sums of counts by build-id; counts without one are a build of their own."""

    def __init__(self) -> None:
        self._builds: dict[str | None, _BuildSums] = {}

    def add(self, counts: BranchCounts, weight: Weight = 1) -> None:
        """Add counts times a weight; raises TooManyError where they add up to 2**63."""
        build_id = counts.build_id
        sums = self._builds.setdefault(build_id, _BuildSums(build_id))
        sums.add(counts, weight)

    def builds(self) -> Iterator[BranchCounts]:
        """The sum of each build, ordered by build-id; one without comes last."""
        for build_id in sorted(self._builds, key=lambda name: (name is None, name)):
            yield self._builds[build_id].total()


@dataclass(slots=True)
class _Weighed:
    """What came with one weight; exact."""

    table: KeyTable = field(default_factory=KeyTable)
    tallies: dict[str, int] = field(default_factory=dict)
    untallied: int = 0
    """Branches of counts that came without tallies."""
    most: int = 0
    """No column adds up to more."""

    def add(self, counts: BranchCounts) -> None:
        values = np.array((counts.count, counts.mispredicted, counts.prediction_unknown))
        self.most += max(map(exact_sum, values))
        if self.most >= LIMIT:
            raise TooManyError
        keys = np.array((counts.from_, counts.to, counts.end, counts.known), np.uint64)
        self.table.add(keys.T, values.T)
        self.tallies = waterfall.merge(self.tallies, counts.tallies)
        if "branches_in_image" not in counts.tallies:
            self.untallied += counts.branch_total()


class _BuildSums:
    """The sum of one build's counts."""

    def __init__(self, build_id: str | None) -> None:
        self._build_id = build_id
        self._by_weight: dict[Weight, _Weighed] = {}

    def add(self, counts: BranchCounts, weight: Weight) -> None:
        self._by_weight.setdefault(weight, _Weighed()).add(counts)

    def total(self) -> BranchCounts:
        shared = lcm(*(weight.denominator for weight in self._by_weight))
        factors = {weight: int(weight * shared) for weight in self._by_weight}
        if sum(each.most * factors[w] for w, each in self._by_weight.items()) >= LIMIT:
            raise TooManyError
        parts = [_scaled(each.table, factors[w]) for w, each in sorted(self._by_weight.items())]
        keys, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        known: U8 = keys[:, 3].astype(np.uint8)
        from_, to, end = placed_addresses(keys[:, :3]).T
        exact = aggregate(from_, to, end, known, *values.T, build_id=self._build_id)
        counts = _divided(exact, shared)
        return replace(counts, tallies=self._tallies(counts))

    def _tallies(self, counts: BranchCounts) -> Mapping[str, int]:
        """What came without any is counted, too, where other counts say how much they had."""
        total: dict[str, Weight] = {}
        for weight, each in self._by_weight.items():
            branches = {} if not each.untallied else dict.fromkeys(
                ("branches_read", "branches_in_image"), each.untallied
            )  # fmt: skip
            tallied = waterfall.merge(each.tallies, branches if self._is_tallied() else {})
            for key, number in tallied.items():
                total[key] = total.get(key, 0) + number * weight
        if self._by_weight.keys() <= {1}:
            return {key: int(number) for key, number in total.items()}
        return waterfall.weighed(total, counts.branch_total())

    def _is_tallied(self) -> bool:
        return any("branches_in_image" in each.tallies for each in self._by_weight.values())


def _scaled(table: KeyTable, factor: int) -> tuple[U64, U64]:
    keys, values = table.rows()
    return keys, values * np.uint64(factor)


def _divided(counts: BranchCounts, divisor: int) -> BranchCounts:
    """Each count divided and rounded; half goes up. A row that comes to nothing is gone."""
    if divisor == 1:
        return counts
    columns = (counts.count, counts.mispredicted, counts.prediction_unknown)
    count, wrong, unknown = (
        (column + np.uint64(divisor // 2)) // np.uint64(divisor) for column in columns
    )
    return aggregate(
        counts.from_, counts.to, counts.end, counts.known, count, wrong,
        np.minimum(unknown, count - wrong), build_id=counts.build_id,
    )  # fmt: skip
