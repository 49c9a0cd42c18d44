"""Which unit has an address where several claim it, against a plain look at every address."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf.lookup import Cover, resolve
from lbr2pgo.program.dwarf.unit import Claims

Rows = list[tuple[int, int, int]]
some_rows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5)), max_size=12
)


def claimed(rows: Rows) -> Claims:
    real = sorted(row for row in rows if row[0] < row[1])
    table = np.array(real, np.uint64).reshape(-1, 3)
    starts, ends, units = table.T.copy()
    return Claims(starts, ends, units.astype(np.int64))


def resolved(rows: Rows) -> Cover:
    return resolve(claimed(rows))


def unit_by_looking(rows: Rows) -> list[int]:
    """Unit of each address below 64: the one before if it goes on, else the first, else -1."""
    bounds = {bound for start, end, _ in rows if start < end for bound in (start, end)}
    result: list[int] = []
    for address in range(64):
        active = [unit for start, end, unit in rows if start <= address < end]
        before = result[-1] if result else -1
        # Between two bounds the unit can't change.
        if before in active and (address not in bounds or before >= 0):
            result.append(before)
        else:
            result.append(min(active, default=-1))
    return result


def units_of(cover: Cover, addresses: np.ndarray) -> list[int]:
    """Unit of each address, -1 where no unit has it."""
    found = np.full(len(addresses), -1)
    for unit, rows in cover.by_unit(addresses):
        assert (found[rows] == -1).all()
        found[rows] = unit
    return found.tolist()


@given(some_rows)
def test_each_address_gets_the_unit_that_a_plain_look_gives_it(rows: Rows) -> None:
    addresses = np.arange(64, dtype=np.uint64)
    assert units_of(resolved(rows), addresses) == unit_by_looking(rows)


@given(some_rows)
def test_intervals_are_sorted_and_free_of_overlaps(rows: Rows) -> None:
    cover = resolved(rows)
    assert np.all(cover.starts < cover.ends)
    assert np.all(cover.ends[:-1] <= cover.starts[1:])


@given(some_rows, st.lists(st.integers(0, 63)))
def test_all_units_with_one_of_the_addresses_are_found(rows: Rows, addresses: list[int]) -> None:
    expected = {unit for start, end, unit in rows for a in addresses if start <= a < end}
    found = claimed(rows).units_with(np.array(addresses, np.uint64))
    assert found.tolist() == sorted(expected)


def test_addresses_up_to_the_highest_can_be_asked() -> None:
    cover = resolved([(0, 5, 3), ((1 << 64) - 16, (1 << 64) - 1, 4)])
    asked = np.array([0, 4, 5, (1 << 64) - 2, (1 << 64) - 1], np.uint64)
    assert units_of(cover, asked) == [3, 3, -1, 4, -1]
    assert units_of(resolved([]), asked) == [-1] * 5


def test_addresses_are_given_to_each_unit_once_and_units_in_order() -> None:
    cover = resolved([(0, 5, 3), (10, 15, 1), (20, 25, 3)])
    asked = np.array([1, 2, 2, 11, 21, 30], np.uint64)
    found = [(unit, rows.tolist()) for unit, rows in cover.by_unit(asked)]
    assert found == [(1, [3]), (3, [0, 1, 2, 4])]
