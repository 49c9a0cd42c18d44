"""What looks like a direct branch, against a plain search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program.blocks._x86_branches import address_filter, find_branches

START = 0x1000
OPCODES = [0xE8, 0xE9, 0x0F, 0x70, 0x7F, 0x80, 0x8F, 0xEB, 0xE0, 0xE3, 0xE4, 0x00, 0xFF]


def branches(code: bytes) -> Iterator[tuple[int, int]]:
    """Source and target of each, by the manual's encodings."""
    for at, opcode in enumerate(code):
        second = code[at + 1] if at + 1 < len(code) else 0
        if opcode in (0xE8, 0xE9):
            skip, width = 1, 4
        elif opcode == 0x0F and second in range(0x80, 0x90):
            skip, width = 2, 4
        elif opcode in (*range(0x70, 0x80), *range(0xE0, 0xE4), 0xEB):
            skip, width = 1, 1
        else:
            continue
        end = at + skip + width
        if end <= len(code):
            distance = int.from_bytes(code[at + skip : end], "little", signed=True)
            yield START + at, (START + end + distance) % 2**64


def found_in(code: bytes, wanted: np.ndarray, room: int) -> list[tuple[int, int]]:
    data, at, rows = np.frombuffer(code, np.uint8), 0, []
    while at + 1 < len(code):
        table = np.zeros((room, 2), np.uint64)
        at, count = find_branches(data, at, START, wanted, table)
        rows += [(a, b) for a, b in table[:count].tolist()]
    return rows


@settings(deadline=None)
@given(st.lists(st.sampled_from(OPCODES) | st.integers(0, 255), max_size=60), st.integers(1, 5))
def test_every_branch_to_a_wanted_address_is_found(numbers: list[int], room: int) -> None:
    code = bytes(numbers)
    expected = list(branches(code))
    wanted = sorted({target for _, target in expected[::2]})
    found = found_in(code, address_filter(np.array(wanted, np.uint64)), room)
    assert set(found) <= set(expected)
    assert [pair for pair in found if pair[1] in wanted] == [
        pair for pair in expected if pair[1] in wanted
    ]


@given(st.sets(st.integers(0, 2**64 - 1), max_size=200))
def test_all_addresses_pass_their_filter_and_few_others_do(addresses: set[int]) -> None:
    wanted = np.array(sorted(addresses), np.uint64)
    bits = address_filter(wanted)
    assert len(bits) & (len(bits) - 1) == 0
    assert int(np.bitwise_count(bits).sum()) <= len(wanted)
    assert 8 * len(bits) >= 16 * len(wanted)


def test_a_filter_that_is_empty_lets_nothing_pass() -> None:
    code = bytes([0xEB, 0xFE] * 50)
    assert found_in(code, address_filter(np.zeros(0, np.uint64)), 4) == []
    found = found_in(code, address_filter(np.array([START], np.uint64)), 4)
    assert (START, START) in found
    assert len(found) < 10


def test_a_table_without_columns_is_an_error() -> None:
    code = np.frombuffer(b"\xeb\xfe\xeb\xfe", np.uint8)
    wanted = address_filter(np.array([START], np.uint64))
    with pytest.raises(IndexError):
        find_branches(code, 0, START, wanted, np.zeros((1, 1), np.uint64))
