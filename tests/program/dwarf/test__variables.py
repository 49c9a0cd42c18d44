"""Variables and entries by hand; real programs are in `test_variables`."""

from __future__ import annotations

import numpy as np
import pytest
from builders.dwarf import abbreviation, dwarf, uleb, unit, words
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf import _units as endings
from lbr2pgo.program.dwarf import _variables as native
from lbr2pgo.program.dwarf.unit import Dwarf

TABLE = (
    abbreviation(1, "compile_unit", children=True)
    + abbreviation(2, "variable", ("location", "exprloc"))
    + abbreviation(3, "variable", ("location", "sec_offset"))
    + abbreviation(
        4, "structure_type", ("name", "string"), ("byte_size", "data1"), children=True
    )
    + abbreviation(
        5, "member", ("name", "string"), ("type", "ref4"), ("data_member_location", "data1")
    )
    + abbreviation(6, "member", ("data_member_location", "block1"))
    + abbreviation(7, "member", ("data_bit_offset", "udata"))
    + abbreviation(8, "subrange_type", ("upper_bound", "sdata"))
    + abbreviation(9, "subrange_type", ("count", "data2"))
    + abbreviation(10, "subprogram", children=True)
    + b"\0"
)  # fmt: skip
ROOT, END = b"\x01", b"\0"
FIRST = 12
ADDR, ADDRX, PLUS, TLS = b"\x03", b"\xa1", b"\x23", b"\x9b"


def variable(location: bytes) -> bytes:
    return b"\x02" + uleb(len(location)) + location


def read(dies: bytes, **sections: bytes) -> Dwarf:
    found = dwarf(info=unit(ROOT + dies), abbrev=TABLE, **sections)
    found.load([0])
    return found


def variables(dies: bytes, **sections: bytes) -> tuple[list[tuple[int, int]], int]:
    found = read(dies, **sections)
    rows, ending = native.static_variables(
        found.with_dies(0), found.units, 0, found.abbreviations
    )  # fmt: skip
    return rows.tolist(), ending


@pytest.mark.parametrize(
    ("location", "address"),
    [
        (ADDR + words(0x1234), 0x1234),
        (ADDR + words(0x1234) + PLUS + uleb(300), 0x1234 + 300),
        (ADDR + words(0x1234) + TLS, None),
        (ADDR + words(0x1234) + PLUS, None),
        (ADDR + words(0x1234)[:7], None),
        (ADDRX + b"\0", None),
        (b"\x91\x10", None),
        (b"", None),
    ],
)
def test_only_an_address_for_good_is_one(location: bytes, address: int | None) -> None:
    other = variable(ADDR + words(0x9999))
    found, ending = variables(variable(location) + b"\x03" + words(8, size=4) + other + END)
    behind = FIRST + len(variable(location)) + 5
    assert found == [(address, FIRST)] * (address is not None) + [(0x9999, behind)]
    assert ending == endings.COMPLETE


def test_variables_in_functions_are_found() -> None:
    dies = b"\x0a" + variable(ADDR + words(64)) + END + END
    assert variables(dies) == ([(64, FIRST + 1)], endings.COMPLETE)


def test_what_stands_before_damage_is_kept() -> None:
    kept = variable(ADDR + words(64))
    assert variables(kept + kept[:6]) == ([(64, FIRST)], endings.DAMAGED)
    assert variables(kept + b"\x7f") == ([(64, FIRST)], endings.NO_DECLARATION)


def entries(dies: bytes, offset: int = FIRST) -> list[tuple[int, ...]]:
    found = read(dies)
    rows = native.entry_with_children(
        found.with_dies(0), found.units, 0, found.abbreviations, offset
    )
    names = ["tag", "size", "place", "count", "where", "type"]
    return list(zip(*(rows[name].tolist() for name in names), strict=True))


STRUCT = b"\x04" + b"s\0" + b"\x10"
NONE = (-1, native.NOWHERE, 0)


def test_an_entry_has_its_own_children_and_not_theirs() -> None:
    inner = STRUCT + b"\x07" + uleb(9) + END
    dies = STRUCT + inner + b"\x05m\0" + words(FIRST, size=4) + b"\x08" + END + STRUCT + END + END
    assert entries(dies) == [
        (0x13, 16, -1, *NONE),
        (0x13, 16, -1, *NONE),
        (0x0D, -1, 8, -1, native.HERE, FIRST),
    ]
    assert entries(dies, FIRST + len(STRUCT))[1:] == [(0x0D, -1, 1, *NONE)]


@pytest.mark.parametrize(
    ("child", "place", "count"),
    [
        (b"\x06" + b"\x03" + PLUS + uleb(300), 300, -1),
        (b"\x06" + b"\x01" + PLUS, -1, -1),
        (b"\x06" + b"\x02" + ADDR + b"\x01", -1, -1),
        (b"\x07" + uleb(17), 2, -1),
        (b"\x07" + uleb(1 << 60), -1, -1),
        (b"\x08" + b"\x07", -1, 8),
        (b"\x08" + b"\x7f", -1, -1),
        (b"\x09" + words(500, size=2), -1, 500),
    ],
)
def test_places_and_counts(child: bytes, place: int, count: int) -> None:
    assert [row[2:4] for row in entries(STRUCT + child + END + END)][1:] == [(place, count)]


def test_where_no_entry_is_none_is_read() -> None:
    dies = STRUCT + END + END
    assert entries(dies, 0) == []
    assert entries(dies, FIRST + len(dies)) == []
    assert entries(dies, -5) == []
    assert entries(STRUCT + b"\x05m") == [(0x13, 16, -1, *NONE)]


@given(st.binary(max_size=80), st.integers(-2, 120))
def test_any_bytes_can_be_read(dies: bytes, offset: int) -> None:
    found, _ = variables(dies)
    assert all(FIRST <= at < FIRST + len(dies) for _, at in found)
    rows = entries(dies, offset)
    assert len(rows) <= len(dies) + 1
    assert np.all([row[2] < 1 << 48 for row in rows])
