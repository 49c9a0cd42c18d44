"""The kernels of pre-aggregated and unsymbolized rows against plain Python, and on any bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native import address_rows, preaggregated_text, text

U64_LIMIT = 2**64
ADDRESSES = {"T": 3, "R": 3, "B": 2, "F": 2, "f": 2, "r": 2, "S": 1}
FORMS = {
    address_rows.ADDRESS: re.compile(rb"\s*([0-9a-fA-F]+)():(\d+)\s*"),
    address_rows.RANGE: re.compile(rb"\s*([0-9a-fA-F]+)-([0-9a-fA-F]+):(\d+)\s*"),
    address_rows.BRANCH: re.compile(rb"\s*([0-9a-fA-F]+)->([0-9a-fA-F]+):(\d+)\s*"),
}

Row = tuple[int, list[int], list[bytes], int, int]

pieces = st.sampled_from(
    [b"B", b"T", b"F", b"f", b"r", b"R", b"S", b"E", b" ", b"  ", b"400500", b"X:", b"ab12:", b":",
     b"0", b"12", b"-", b"->", b"\n", b"\n", b"#", b"\t", b"\r", b"f" * 17,
     b"9" * 20, b"\xff", b"-1"]
)  # fmt: skip
contents = st.lists(pieces, max_size=80).map(b"".join)


def bytes_of(content: bytes) -> text.Text:
    return np.frombuffer(bytearray(content), dtype=np.uint8)


def number(word: bytes) -> int | None:
    return int(word) if re.fullmatch(rb"\d+", word) and int(word) < U64_LIMIT - 10 else None


def plain_row(line: bytes) -> Row | None:
    letter, *words = line.split()
    wanted = ADDRESSES.get(letter.decode("latin-1"))
    counts = 2 if letter == b"B" else 1
    if wanted is None or len(words) != wanted + counts:
        return None
    locations = [re.fullmatch(rb"(?:(.*):)?([0-9a-fA-F]+)", word) for word in words[:wanted]]
    numbers = [number(word) for word in words[wanted:]]
    if None in locations or None in numbers:
        return None
    addresses = [int(found[2], 16) for found in locations if found]
    if max(addresses) >= U64_LIMIT:
        return None
    images = [found[1] or b"" for found in locations if found]
    return letter[0], addresses, images, numbers[0] or 0, (numbers[1:] or [0])[0] or 0


def lines_of(content: bytes) -> list[bytes]:
    """Lines that hold something; blanks are those of the kernels."""
    lines = [line.strip(b" \t\r\v\f") for line in content.split(b"\n")]
    return [line for line in lines if line and not line.startswith(b"#")]


@settings(deadline=None, max_examples=400)
@given(contents)
def test_preaggregated_rows_are_those_of_plain_python(content: bytes) -> None:
    plain = [plain_row(line) for line in lines_of(content) if line.split()[0] != b"E"]
    size = len(content) // preaggregated_text.FEWEST_BYTES + 1
    rows = preaggregated_text.Rows(
        kind=np.zeros(size, np.uint8), address=np.zeros((size, 3), np.uint64),
        image=np.zeros((size, 3), np.uint64), image_place=np.zeros((size, 3, 2), np.int64),
        amount=np.zeros(size, np.uint64), mispredicted=np.zeros(size, np.uint64),
    )  # fmt: skip
    found, bad = preaggregated_text.read_rows(bytes_of(content), rows)
    assert (found, bad) == (len(plain) - plain.count(None), plain.count(None))
    for i, row in enumerate(row for row in plain if row):
        kind, addresses, images, amount, mispredicted = row
        used = len(addresses)
        assert rows.kind[i] == kind
        assert rows.address[i].tolist() == addresses + [0] * (3 - used)
        hashes = [text.hash_name(image) if image else 0 for image in images]
        assert rows.image[i].tolist() == hashes + [0] * (3 - used)
        assert (int(rows.amount[i]), int(rows.mispredicted[i])) == (amount, mispredicted)
        for image, (start, end) in zip(images, rows.image_place[i].tolist(), strict=False):
            assert not image or content[start:end] == image


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=200)
@given(contents)
def test_address_rows_are_those_of_a_regular_expression(form: int, content: bytes) -> None:
    lines = content.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    matches = [FORMS[form].fullmatch(line) for line in lines]
    numbers = [(int(m[1], 16), int(m[2] or b"0", 16), int(m[3])) for m in matches if m]
    plain = [row for row in numbers if max(row) < U64_LIMIT - 10]
    rows = np.zeros((len(lines), 3), np.uint64)
    place, count, found = address_rows.read_rows(bytes_of(content), 0, form, rows)
    assert (place, count) == (len(content), len(lines))
    assert rows[:found].tolist() == [list(row) for row in plain]


def test_address_rows_stop_where_there_is_no_room() -> None:
    content = b"1-2:3\n4-5:6\n7-8:9\n"
    rows = np.zeros((2, 3), np.uint64)
    assert address_rows.read_rows(bytes_of(content), 0, address_rows.RANGE, rows) == (12, 2, 2)
    assert rows.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert address_rows.read_rows(bytes_of(content), 12, address_rows.RANGE, rows) == (18, 1, 1)
