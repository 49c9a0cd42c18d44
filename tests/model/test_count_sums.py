"""Sums of counts, build by build, against a dictionary of fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.model.count_sums import CountSums
from lbr2pgo.support.addresses import image_addresses
from lbr2pgo.support.sums import TooManyError

WHOLE = BRANCH | FROM | TO | END
COLUMNS = ("from_", "to", "end", "known", "count", "mispredicted", "prediction_unknown")

address = st.integers(0, 2) | st.just(2**64 - 1)
row = st.tuples(address, address, address, st.sampled_from([WHOLE, BRANCH | FROM, TO | END]),
                st.integers(1, 99))  # fmt: skip
host = st.tuples(st.sampled_from(["aa", "bb", None]), st.lists(row, max_size=6))
weights = st.fractions(Fraction(1, 9), 9, max_denominator=9)


def counts_of(rows: Sequence[tuple[int, ...]], build_id: str | None = "aa") -> BranchCounts:
    columns = [np.array([row[i] for row in rows], np.uint64) for i in range(5)]
    addresses = map(image_addresses, columns[:3])
    known, count = columns[3].astype(np.uint8), columns[4]
    half = count // np.uint64(2)
    found = aggregate(*addresses, known, count, half, count - half, build_id=build_id)
    branches = found.branch_total()
    tally = {"branches_read": branches + 7, "branches_in_image/outside": 7,
             "branches_in_image": branches, "outside_in/libc.so.6": 5}  # fmt: skip
    return BranchCounts(*(getattr(found, name) for name in COLUMNS), build_id, tally)


def total(hosts: Sequence[tuple[BranchCounts, Fraction]]) -> list[BranchCounts]:
    sums = CountSums()
    for counts, weight in hosts:
        sums.add(counts, weight)
    return list(sums.builds())


def are_same(some: Sequence[BranchCounts], others: Sequence[BranchCounts]) -> bool:
    def content(counts: BranchCounts) -> object:
        columns = [getattr(counts, name).tobytes() for name in COLUMNS]
        return columns, counts.build_id, dict(counts.tallies)

    return list(map(content, some)) == list(map(content, others))


@given(st.lists(host, max_size=5), st.permutations(range(5)), st.integers(0, 5))
def test_sums_are_the_same_in_any_order_and_in_any_groups(
    hosts: list[tuple[str | None, list[tuple[int, ...]]]], order: list[int], cut: int
) -> None:
    counts = [(counts_of(rows, build_id), Fraction(1)) for build_id, rows in hosts]
    whole = total(counts)
    assert are_same(whole, total([counts[i] for i in order if i < len(counts)]))
    groups = [total(counts[:cut]), total(counts[cut:])]
    assert are_same(whole, total([(each, Fraction(1)) for group in groups for each in group]))


@given(st.lists(st.tuples(st.lists(row, max_size=5), weights), min_size=1, max_size=4))
def test_weighed_sums_are_rounded_once(
    hosts: list[tuple[list[tuple[int, ...]], Fraction]],
) -> None:
    (found,) = total([(counts_of(rows), weight) for rows, weight in hosts])
    exact: Counter[tuple[int, ...]] = Counter()
    for rows, weight in hosts:
        for counts in [counts_of(rows)]:
            keys = zip(*(getattr(counts, name).tolist() for name in COLUMNS[:4]), strict=True)
            for key, count in zip(keys, counts.count.tolist(), strict=True):
                exact[key] += count * weight  # type: ignore[assignment]
    rounded = {key: int(value + Fraction(1, 2)) for key, value in exact.items()}
    keys = zip(*(getattr(found, name).tolist() for name in COLUMNS[:4]), strict=True)
    assert dict(zip(keys, found.count.tolist(), strict=True)) == {
        key: value for key, value in rounded.items() if value
    }
    assert (found.mispredicted + found.prediction_unknown <= found.count).all()
    assert waterfall.is_sound(found.tallies)
    assert found.tallies["branches_in_image"] == found.branch_total()


def test_whole_weights_are_as_many_files() -> None:
    one, other = counts_of([(1, 2, 2, WHOLE, 5)]), counts_of([(1, 2, 3, WHOLE, 4)])
    twice = total([(one, Fraction(1)), (one, Fraction(1)), (other, Fraction(1))])
    assert are_same(twice, total([(one, Fraction(2)), (other, Fraction(1))]))


def test_builds_stay_apart_and_one_without_a_name_comes_last() -> None:
    hosts = [(counts_of([(1, 2, 3, WHOLE, 1)], name), Fraction(1)) for name in (None, "bb", "aa")]
    assert [counts.build_id for counts in total(hosts)] == ["aa", "bb", None]


def test_sums_that_no_tool_reads_are_refused() -> None:
    large = counts_of([(1, 2, 3, WHOLE, 2**62)])
    with pytest.raises(TooManyError):
        total([(large, Fraction(1)), (large, Fraction(1))])
    with pytest.raises(TooManyError):
        total([(large, Fraction(2, 3))])
