"""Rows of ranges and branches against regular expressions, on any bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.sources import _address_rows

U64_LIMIT = 2**64
FORMS = {
    _address_rows.ADDRESS: re.compile(rb"\s*([0-9a-fA-F]+)():(\d+)\s*"),
    _address_rows.RANGE: re.compile(rb"\s*([0-9a-fA-F]+)-([0-9a-fA-F]+):(\d+)\s*"),
    _address_rows.BRANCH: re.compile(rb"\s*([0-9a-fA-F]+)->([0-9a-fA-F]+):(\d+)\s*"),
}

pieces = st.sampled_from(
    [b" ", b"  ", b"400500", b"ab12", b":", b"0", b"12", b"-", b"->", b"\n", b"\n", b"\t", b"\r",
     b"f" * 17, b"9" * 20, b"\xff", b"-1", b"12-34:5", b"12->34:5", b"40:7\n"]
)  # fmt: skip
contents = st.lists(pieces, max_size=80).map(b"".join)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=200)
@given(contents)
def test_rows_are_those_of_a_regular_expression(form: int, content: bytes) -> None:
    lines = content.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    matches = [FORMS[form].fullmatch(line) for line in lines]
    numbers = [(int(m[1], 16), int(m[2] or b"0", 16), int(m[3])) for m in matches if m]
    plain = [row for row in numbers if max(row) < U64_LIMIT - 10]
    rows = np.zeros((len(lines), 3), np.uint64)
    place, count, found = _address_rows.read_rows(content, 0, form, rows)
    assert (place, count) == (len(content), len(lines))
    assert rows[:found].tolist() == [list(row) for row in plain]


def test_rows_stop_where_there_is_no_room() -> None:
    content = b"1-2:3\n4-5:6\n7-8:9\n"
    rows = np.zeros((2, 3), np.uint64)
    assert _address_rows.read_rows(content, 0, _address_rows.RANGE, rows) == (12, 2, 2)
    assert rows.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert _address_rows.read_rows(content, 12, _address_rows.RANGE, rows) == (18, 1, 1)
