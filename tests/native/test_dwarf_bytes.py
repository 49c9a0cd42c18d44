"""Numbers of a DWARF section, against the plainest way to read them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.dwarf_bytes import after_string, fixed, grown, initial_length, sleb, uleb

U64 = (1 << 64) - 1


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def encode_uleb(number: int) -> bytes:
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def encode_sleb(number: int) -> bytes:
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        done = number == -(byte >> 6)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


@settings(deadline=None)  # the first call compiles
@given(st.binary(max_size=9), st.integers(0, U64), st.integers(0, 12))
def test_uleb_reads_what_was_written_and_stops_at_the_end(
    before: bytes, number: int, padding: int
) -> None:
    written = encode_uleb(number)
    padded = written[:-1] + bytes([written[-1] | 0x80]) + b"\x80" * padding + b"\0"
    for encoded in (written, padded):
        data = array(before + encoded)
        assert uleb(data, len(before), len(data)) == (number, len(data))
        assert uleb(data, len(before), len(data) - 1)[1] == -1
        assert uleb(data[:-1], len(before), len(data))[1] == -1


@settings(deadline=None)  # the first call compiles
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_sleb_gives_twos_complement(number: int) -> None:
    data = array(encode_sleb(number))
    assert sleb(data, 0, len(data)) == (number & U64, len(data))
    assert sleb(data, 0, len(data) - 1)[1] == -1


@settings(deadline=None)  # the first call compiles
@given(st.binary(min_size=8, max_size=8), st.integers(0, 8))
def test_fixed_is_little_endian(data: bytes, size: int) -> None:
    assert fixed(array(data), 0, 8, size) == (int.from_bytes(data[:size], "little"), size)


@pytest.mark.parametrize(
    ("position", "end"), [(-1, 8), (5, 8), (0, 3), (1 << 40, 1 << 41), ((1 << 63) - 2, 8)]
)
def test_a_read_past_the_end_gives_minus_one(position: int, end: int) -> None:
    data = array(bytes(8))
    assert fixed(data, position, end, 4)[1] == -1


def test_minus_one_is_handed_on() -> None:
    data = array(bytes(8))
    assert uleb(data, -1, 8)[1] == sleb(data, -1, 8)[1] == after_string(data, -1, 8) == -1


def test_strings_end_behind_their_zero() -> None:
    data = array(b"ab\0c")
    assert after_string(data, 0, 4) == 3
    assert after_string(data, 2, 4) == 3
    assert after_string(data, 3, 4) == -1
    assert after_string(data, 0, 2) == -1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x05\0\0\0" + bytes(5), (5, 4, 4)),
        (b"\xff\xff\xff\xff\x03\0\0\0\0\0\0\0" + bytes(3), (3, 8, 12)),
        (b"\xf0\xff\xff\xff" + bytes(9), (-1, 4, 4)),
        (b"\xff\xff\xff\x7f", (-1, 4, 4)),
        (b"\xff\xff\xff\xff" + b"\xff" * 8, (-1, 8, 12)),
    ],
)
def test_initial_lengths_are_bounded_by_the_section(
    data: bytes, expected: tuple[int, int, int]
) -> None:
    assert initial_length(array(data), 0, len(data)) == expected


def test_a_full_array_grows_and_keeps_its_rows() -> None:
    rows = np.array([3, 4], np.int64)
    assert grown(rows, 1) is rows
    more = grown(rows, 2)
    assert len(more) > 4
    assert more[:2].tolist() == [3, 4]
