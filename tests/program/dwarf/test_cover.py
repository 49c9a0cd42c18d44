"""Which unit claims an address, against a plain look at every address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf.cover import Claims, Cover, read_aranges, resolve

Rows = list[tuple[int, int, int]]
some_rows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5)), max_size=12
)


def claimed(rows: Rows) -> Claims:
    real = sorted(row for row in rows if row[0] < row[1])
    table = np.array(real, np.uint64).reshape(-1, 3)
    return Claims(table[:, 0], table[:, 1], table[:, 2].astype(np.int64))


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


@given(some_rows)
def test_each_address_gets_the_unit_that_a_plain_look_gives_it(rows: Rows) -> None:
    addresses = np.arange(64, dtype=np.uint64)
    assert resolved(rows).unit_of(addresses).tolist() == unit_by_looking(rows)


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
    assert cover.unit_of(asked).tolist() == [3, 3, -1, 4, -1]
    assert resolved([]).unit_of(asked).tolist() == [-1] * 5


def arange_set(unit: int, *pairs: int, size: int = 8, segment: int = 0, version: int = 2) -> bytes:
    header = version.to_bytes(2, "little") + unit.to_bytes(4, "little") + bytes([size, segment])
    padding = bytes(-(4 + len(header)) % (2 * size))
    tuples = b"".join(number.to_bytes(size, "little") for number in (*pairs, 0, 0))
    body = header + padding + tuples
    return len(body).to_bytes(4, "little") + body


def read(data: bytes) -> tuple[list[int], list[list[int]]]:
    listed, ranges = read_aranges(np.frombuffer(data, np.uint8))
    return listed.tolist(), ranges.tolist()


@pytest.mark.parametrize("size", [4, 8])
def test_sets_of_aranges_follow_each_other(size: int) -> None:
    data = arange_set(7, 16, 4, 64, 8, size=size) + arange_set(99, 32, 1, size=size)
    assert read(data) == ([7, 99], [[16, 20, 7], [64, 72, 7], [32, 33, 99]])


@pytest.mark.parametrize(
    "bad",
    [
        arange_set(9, 1, 1, segment=1),
        arange_set(9, 1, 1, size=8)[:-1],
        arange_set(9, 1, 1, size=8)[:7],
        b"\xf5\xff\xff\xff" + bytes(40),
        arange_set(9, 1, 1)[:-16] + b"\x01" * 16,  # not ended by zeros
    ],
)
def test_a_damaged_set_ends_the_reading(bad: bytes) -> None:
    good = arange_set(7, 16, 4)
    assert read(good + bad) == ([7], [[16, 20, 7]])


def test_a_set_may_list_nothing() -> None:
    assert read(arange_set(7) + arange_set(8, 1, 2)) == ([7, 8], [[1, 3, 8]])
