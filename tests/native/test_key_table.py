"""The hash table against a dictionary."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.key_table import KeyTable

Key = tuple[int, int, int, int]


def add(table: KeyTable, keys: Sequence[Key], sums: Sequence[tuple[int, int, int]]) -> None:
    table.add(
        np.array(keys, np.uint64).reshape(-1, 4), np.array(sums, np.uint64).reshape(-1, 3)
    )  # fmt: skip


def content_of(table: KeyTable) -> dict[Key, tuple[int, int, int]]:
    keys, sums = table.rows()
    found = dict(zip(map(tuple, keys.tolist()), map(tuple, sums.tolist()), strict=True))
    assert len(found) == len(keys) == len(table), "a key stands in two places"
    return found


words = st.integers(0, 3) | st.sampled_from([(1 << 64) - 1, 1 << 63, 1 << 32])
keys = st.tuples(words, words, words, words)
rows = st.lists(st.tuples(keys, st.tuples(*[st.integers(0, 99)] * 3)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(rows, st.integers(0, 60))
def test_the_table_adds_up_like_a_dictionary(
    drawn: list[tuple[Key, tuple[int, int, int]]], cut: int
) -> None:
    table = KeyTable()
    for part in (drawn[:cut], drawn[cut:]):
        add(table, [key for key, _ in part], [value for _, value in part])
    expected: dict[Key, tuple[int, int, int]] = {}
    for key, value in drawn:
        before = expected.get(key, (0, 0, 0))
        expected[key] = (
            before[0] + value[0],
            before[1] + value[1],
            before[2] + value[2],
        )
    assert content_of(table) == expected


def test_keys_that_differ_in_one_number_are_apart() -> None:
    table = KeyTable()
    for column in range(4):
        for bit in (0, 1, 31, 32, 63):
            key = [0, 0, 0, 1 << 62]
            key[column] |= 1 << bit
            add(table, [tuple(key)], [(1, 0, 2)])  # type: ignore[list-item]
    assert len(content_of(table)) == 20


def test_it_grows_and_forgets_nothing() -> None:
    table = KeyTable()
    numbers = np.arange(1, 100_001, dtype=np.uint64)
    keys = np.column_stack([numbers, numbers * 3, numbers % 7, np.ones_like(numbers)])
    for half in (keys[::2], keys[1::2], keys[:1000]):
        table.add(half.copy(), half[:, :3].copy())
    found, sums = table.rows()
    order = np.argsort(found[:, 0])
    assert np.array_equal(found[order], keys)
    twice = np.where(numbers <= 1000, 2, 1).astype(np.uint64)
    assert np.array_equal(sums[order], keys[:, :3] * twice[:, None])


def test_addresses_in_rows_spread_over_the_table() -> None:
    """Neighbouring addresses must not make searches long, which a bad hash makes a thousandfold."""
    n = 1 << 16
    addresses = 0x400000 + 4 * np.arange(n, dtype=np.uint64)
    rows = np.column_stack(
        [addresses, addresses + 64, np.zeros_like(addresses), 15 + 0 * addresses]
    )
    scattered = np.random.default_rng(5).integers(1, 1 << 63, (n, 4), np.uint64)
    took = []
    for keys in (scattered, rows):
        table, sums = KeyTable(), np.ones((n, 3), np.uint64)
        start = time.thread_time()
        table.add(keys, sums)
        took.append(time.thread_time() - start)
    assert took[1] < 20 * took[0]


def test_rows_of_another_table_make_no_long_searches() -> None:
    """As would those that come in the order of the hash: they fill a table from its front."""
    n = 5 << 16
    mine, others = np.random.default_rng(6).integers(1, 1 << 63, (2, n, 4), np.uint64)
    other, sums = KeyTable(), np.ones((n, 3), np.uint64)
    other.add(others, sums)
    took = []
    for keys in (others, other.rows()[0]):
        table = KeyTable()
        table.add(mine, sums)
        start = time.thread_time()
        table.add(keys, sums)
        took.append(time.thread_time() - start)
    assert took[1] < 10 * took[0]


def test_keys_whose_hashes_are_the_same_are_apart() -> None:
    """Of 400,000 keys, some twenty have the 32 bits of another."""
    keys = np.random.default_rng(7).integers(0, 1 << 63, (400_000, 4), np.uint64)
    table = KeyTable()
    for _ in range(2):
        table.add(keys, keys[:, :3].copy())
    found, sums = table.rows()
    assert np.array_equal(found, keys)
    assert np.array_equal(sums, 2 * keys[:, :3])


def test_each_key_has_its_sums() -> None:
    with pytest.raises(ValueError, match="2 keys with 1 sums"):
        add(KeyTable(), [(1, 1, 1, 1)] * 2, [(1, 1, 1)])
