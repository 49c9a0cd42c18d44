from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.instruction_counts import InstructionCounts, aggregate, merge
from lbr2pgo.support.sums import TooManyError

Rows = list[tuple[int, int]]
rows = st.lists(st.tuples(st.integers(0, 5) | st.just(2**64 - 1), st.integers(0, 100)), max_size=12)


def counts(given: Rows, **rest: object) -> InstructionCounts:
    table = np.array(given, np.uint64).reshape(-1, 2)
    return aggregate(table[:, 0], table[:, 1], **rest)  # type: ignore[arg-type]


@given(rows, rows)
def test_rows_and_counts_add_up_as_in_a_plain_counter(first: Rows, second: Rows) -> None:
    expected: Counter[int] = Counter()
    for address, count in [*first, *second]:
        expected[address] += count
    found = merge([counts(first), counts(second)])
    assert list(zip(found.address.tolist(), found.count.tolist(), strict=True)) == sorted(
        (address, count) for address, count in expected.items() if count
    )
    assert found.total == sum(expected.values())


def test_builds_are_not_mixed_and_tallies_add_up() -> None:
    old = counts([(1, 2)], build_id="aa", tallies={"ips": 2})
    assert merge([old, counts([(1, 1)], tallies={"ips": 1})]).build_id == "aa"
    assert merge([old, old]).tallies == {"ips": 4}
    with pytest.raises(ValueError, match="different builds: aa, bb"):
        merge([old, counts([], build_id="bb")])


def test_counts_that_no_longer_fit_are_refused() -> None:
    with pytest.raises(TooManyError):
        counts([(1, 2**62), (1, 2**62)])


def test_rows_out_of_order_are_refused() -> None:
    addresses = np.array([2, 1], np.uint64)
    with pytest.raises(ValueError, match=r"InstructionCounts\.address: row 1 is below"):
        InstructionCounts(addresses, addresses)
