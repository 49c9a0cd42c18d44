"""Rows of pre-aggregated profiles against plain Python, on any bytes."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.sources import _preaggregated

U64_LIMIT = 2**64
ADDRESSES = {"T": 3, "R": 3, "B": 2, "F": 2, "f": 2, "r": 2, "S": 1}

Row = tuple[int, list[int], list[bytes], int, int]

pieces = st.sampled_from(
    [b"B", b"T", b"F", b"f", b"r", b"R", b"S", b"E", b" ", b"  ", b"400500", b"X:", b"ab12:", b":",
     b"0", b"12", b"-", b"\n", b"\n", b"#", b"\t", b"\r", b"f" * 17, b"9" * 20, b"\xff", b"-1",
     b"B 10 20 3 1\n", b"T 10 X:20 3 1", b"S ab12:4 7\n", b"F 10 20 3\n"]
)  # fmt: skip
contents = st.lists(pieces, max_size=80).map(b"".join)


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
    """Lines that hold something; blanks are those of the loop."""
    lines = [line.strip(b" \t\r\v\f") for line in content.split(b"\n")]
    return [line for line in lines if line and not line.startswith(b"#")]


@settings(max_examples=400)
@given(contents)
def test_rows_are_those_of_plain_python(content: bytes) -> None:
    plain = [plain_row(line) for line in lines_of(content) if line.split()[0] != b"E"]
    rows = _preaggregated.read_rows(content)
    assert len(rows.kind) == len(plain) - plain.count(None)
    assert rows.bad_lines == plain.count(None)
    for i, row in enumerate(row for row in plain if row):
        kind, addresses, images, count, mispredicted = row
        padding = [0] * (3 - len(addresses))
        assert rows.kind[i] == kind
        assert rows.address[i].tolist() == addresses + padding
        found = [rows.images[h] if h else b"" for h in rows.image[i].tolist()]
        assert found == images + [b""] * len(padding)
        assert (int(rows.amount[i]), int(rows.mispredicted[i])) == (count, mispredicted)
