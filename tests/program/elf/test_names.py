"""Names in a string table, where one may be the end of another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf.names import Names

TABLE = b"\0work.cold\0main\0$x\0$x.1"
OFFSETS = {"": 0, "work.cold": 1, "cold": 6, "main": 11, "$x": 16, "$x.1": 19}


@pytest.fixture
def names() -> Names:
    return Names(TABLE, np.array([*OFFSETS.values(), -1]))


def test_every_name_is_read(names: Names) -> None:
    assert list(names) == [*OFFSETS, ""]
    assert names.all_raw() == [name.encode() for name in [*OFFSETS, ""]]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (b"work", ["work.cold"]),
        (b"$x", ["$x", "$x.1"]),
        (b"$x\0", ["$x"]),
        (b"$x.", ["$x.1"]),
        (b"$x.1\0", ["$x.1"]),
        (b"\0", [""]),
    ],
)
def test_names_that_start_so(names: Names, prefix: bytes, expected: list[str]) -> None:
    assert [names[row] for row in np.flatnonzero(names.start_with(prefix))] == expected


def test_rows_that_hold_a_part(names: Names) -> None:
    assert [names[row] for row in names.rows_holding([b".cold"])] == ["work.cold", "cold"]
    assert [names[row] for row in names.rows_holding([b".warm", b"ai"])] == ["main"]
    assert names.rows_holding([b"nothing"]).tolist() == []


def test_rows_of_names(names: Names) -> None:
    assert names.rows_of({b"main", b"$x", b"none"}) == {b"main": [3], b"$x": [4]}
    assert names.rows_of({b""}) == {b"": [0, 6]}
    assert names.rows_of(set()) == {}


@given(st.binary(max_size=30), st.lists(st.integers(-1, 29), max_size=8))
def test_all_at_once_is_as_one_by_one(table: bytes, offsets: list[int]) -> None:
    names = Names(table, np.array([min(at, len(table) - 1) for at in offsets], np.int64))
    assert names.all_raw() == [names.raw(row) for row in range(len(names))]
    assert names.start_with(b"a").tolist() == [name[:1] == b"a" for name in names.all_raw()]
    has_offset = names.offset >= 0
    assert names.start_with(b"a\0").tolist() == [name == b"a" for name in names.all_raw()]
    assert names.start_with(b"\0").tolist() == [
        at and not name for at, name in zip(has_offset.tolist(), names.all_raw(), strict=True)
    ]
