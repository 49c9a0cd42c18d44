"""The steps that all readers of text share against Python's own, seen in rows of addresses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.sources import _address_rows

U64_LIMIT = 2**64
BYTES = st.lists(st.sampled_from(b"\n\x0b\x8a\x0a\xff0:1"), max_size=40).map(bytes)


def row(address: bytes, count: bytes) -> tuple[int, int] | None:
    """The numbers of a lone address and its count, None if they are no row."""
    rows = np.zeros((1, 3), dtype=np.uint64)
    text = address + b":" + count
    _, _, found = _address_rows.read_rows(text, 0, _address_rows.ADDRESS, rows)
    return (int(rows[0, 0]), int(rows[0, 2])) if found else None


@given(BYTES)
def test_lines_end_where_python_finds_their_end(text: bytes) -> None:
    rows = np.zeros((len(text) + 1, 3), dtype=np.uint64)
    place, lines, _ = _address_rows.read_rows(text, 0, _address_rows.ADDRESS, rows)
    assert (place, lines) == (len(text), text.count(b"\n") + (text[-1:] not in (b"", b"\n")))


@given(st.integers(0, U64_LIMIT - 1), st.integers(0, 20), st.sampled_from(["x", "X"]))
def test_hexadecimal_numbers_of_any_length(value: int, zeros: int, case: str) -> None:
    assert row(f"{'0' * zeros}{value:{case}}".encode(), b"1") == (value, 1)


# Eight bytes are looked at together: each of them may be the wrong one.
@given(st.binary(min_size=8, max_size=8), st.integers(0, 7), st.integers(0, 255))
def test_one_wrong_byte_among_digits_is_seen(digits: bytes, place: int, byte: int) -> None:
    text = bytearray(b"0123456789abcdefABCDEF"[digit % 22] for digit in digits)
    text[place] = byte
    is_hex = byte in b"0123456789abcdefABCDEF"
    found = row(bytes(text).replace(b":", b"g").replace(b"\n", b"g"), b"1")
    if place == 0 and byte in b" \t\v\f\r":  # blanks before a row
        assert found == (int(text, 16), 1)
    else:
        assert found == ((int(text, 16), 1) if is_hex else None)


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b"0", 0), (b"fF0", 0xFF0), (b"", None), (b"g", None), (b"f" * 16, 2**64 - 1),
     (b"1" + b"f" * 16, None), (b"0" * 30 + b"1", 1), (b"fF0g", None)],
)  # fmt: skip
def test_hexadecimal_numbers(raw: bytes, value: int | None) -> None:
    assert row(raw, b"1") == (None if value is None else (value, 1))


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b"0", 0), (b"120", 120), (b"x", None), (b"", None), (b"9" * 19, 10**19 - 1),
     (b"9" * 20, None), (b"0" * 30 + b"7", 7), (b"18446744073709551609", 2**64 - 7)],
)  # fmt: skip
def test_decimal_numbers(raw: bytes, value: int | None) -> None:
    assert row(b"1", raw) == (None if value is None else (1, value))
