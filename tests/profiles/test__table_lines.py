"""Lines of tables, against those that Python formats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles._table_lines import put_lines
from lbr2pgo.profiles.table_lines import name_bytes, table_lines

NAMES = [b"main", b"", b"_Z3foov"]
NUMBER = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(NUMBER, st.integers(0, len(NAMES) - 1), NUMBER), max_size=9))
def test_lines_are_those_that_python_formats(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.uint64).reshape(-1, 3)
    found = b"".join(table_lines("T %x:%s %d", list(table.T), name_bytes(NAMES)))
    assert found == b"".join(b"T %x:%s %d\n" % (a, NAMES[i], b) for a, i, b in rows)


def test_many_rows_come_in_blocks() -> None:
    column = np.arange(1 << 17, dtype=np.uint64)
    blocks = list(table_lines("%d", [column]))
    assert len(blocks) > 1
    assert b"".join(blocks) == b"".join(b"%d\n" % number for number in column.tolist())


def test_columns_of_any_width_will_do() -> None:
    columns = [np.array([1], np.uint8), np.array([2], np.int32)]
    assert b"".join(table_lines("%d %x", columns)) == b"1 2\n"


@pytest.mark.parametrize("room", [0, 1, 4, 7])
def test_too_little_room_is_an_error(room: int) -> None:
    rows, nothing = np.array([[255, 12345]], np.uint64), name_bytes([])
    out = np.zeros(room, np.uint8)
    with pytest.raises(IndexError, match="room"):
        put_lines(b"%x %d\n", rows, nothing.text, nothing.start, out)


def test_a_name_that_is_not_there_is_an_error() -> None:
    names, out = name_bytes(NAMES), np.zeros(99, np.uint8)
    for row in (3, 2**63):
        with pytest.raises(IndexError):
            put_lines(b"%s\n", np.array([[row]], np.uint64), names.text, names.start, out)


def test_a_form_with_more_columns_than_the_table_is_an_error() -> None:
    names, out = name_bytes(NAMES), np.zeros(99, np.uint8)
    for form in (b"%d %d\n", b"%"):
        with pytest.raises(IndexError):
            put_lines(form, np.array([[1]], np.uint64), names.text, names.start, out)
