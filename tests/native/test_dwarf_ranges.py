"""Address ranges of DIEs, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.native import dwarf_forms as forms_of
from lbr2pgo.native.dwarf_ranges import NO_ROOM, put_ranges, unit_ranges
from lbr2pgo.native.dwarf_units import FUNCTION_SLOTS, HIGH_PC, LOW_PC, RANGES, UNIT, Sections

ALL_ONES = (1 << 64) - 1
BASE = 0x10000
ADDRESSES = (0x1000, 0x2000, ALL_ONES)


def u8(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)


def unit(version: int, low_pc: int | None = BASE) -> np.ndarray:
    row = np.zeros(1, UNIT)
    row["version"], row["address_size"], row["offset_size"] = version, 8, 4
    row["has_low_pc"], row["low_pc"] = low_pc is not None, low_pc or 0
    row["rnglists_base"] = 8
    return row


def ranges_of(
    row: np.ndarray, attributes: dict[int, tuple[int, int]], ranges: bytes = b"", lists: bytes = b""
) -> list[tuple[int, int]]:
    forms, values = np.zeros(FUNCTION_SLOTS, np.int16), np.zeros(FUNCTION_SLOTS, np.uint64)
    for slot, (form, value) in attributes.items():
        forms[slot], values[slot] = form, value
    sections = Sections(u8(b""), u8(b""), u8(words(*ADDRESSES)), u8(ranges), u8(lists))
    for room in range(100):
        found = np.full((room + 1, 3), 99, np.uint64)
        count = put_ranges(sections, row[0], forms, values, 7, found[:room], np.int64(0))
        assert (found[room] == 99).all()  # nothing is put where there is no room
        if count != NO_ROOM:
            break
    assert all(owner == 7 for owner in found[:count, 2])
    return [(low, high) for low, high, _ in found[:count].tolist()]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((forms_of.ADDR, 16), (forms_of.ADDR, 32), [(16, 32)]),
        ((forms_of.ADDR, 16), (forms_of.DATA4, 32), [(16, 48)]),
        ((forms_of.ADDR, 16), (forms_of.UDATA, 32), [(16, 48)]),
        ((forms_of.ADDRX, 0), (forms_of.DATA1, 32), [(0x1000, 0x1020)]),
        ((forms_of.ADDRX1, 0), (forms_of.ADDRX1, 1), [(0x1000, 0x2000)]),
        ((forms_of.ADDR, 0), (forms_of.DATA4, 32), [(0, 32)]),
        ((forms_of.ADDR, ALL_ONES), (forms_of.DATA4, 32), []),
        ((forms_of.ADDRX, 2), (forms_of.DATA4, 32), []),
        ((forms_of.ADDRX, 9), (forms_of.DATA4, 32), []),
        ((forms_of.ADDR, 16), (0, 0), []),
        ((forms_of.ADDR, 16), (forms_of.EXPRLOC, 32), []),
        ((0, 0), (forms_of.DATA4, 32), []),
    ],
)
def test_low_and_high_pc(
    low: tuple[int, int], high: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    assert ranges_of(unit(5), {LOW_PC: low, HIGH_PC: high}) == expected


CLASSIC = {
    "relative to the unit": (words(1, 2, 5, 9), [(BASE + 1, BASE + 2), (BASE + 5, BASE + 9)]),
    "another base": (words(1, 2, ALL_ONES, 0x50, 1, 2), [(BASE + 1, BASE + 2), (0x51, 0x52)]),
    "dropped code": (words(ALL_ONES - 1, ALL_ONES - 1, 1, 2), [(BASE + 1, BASE + 2)]),
    "base of dropped code": (words(ALL_ONES, ALL_ONES - 1, 1, 2), []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("case", CLASSIC.values(), ids=CLASSIC)
@pytest.mark.parametrize("before", [0, 24])
def test_lists_before_dwarf_5(case: tuple[bytes, list[tuple[int, int]]], before: int) -> None:
    data, expected = case
    attribute = {RANGES: (forms_of.SEC_OFFSET, before)}
    assert ranges_of(unit(4), attribute, bytes(before) + data + words(0, 0)) == expected
    assert ranges_of(unit(4), attribute, bytes(before) + data) == []  # cut


def test_lists_of_a_split_unit_count_from_its_part_of_the_section() -> None:
    row = unit(4, None)
    row["ranges_base"] = 32
    data = bytes(32) + words(9, 9) + words(1, 2, 0, 0)
    assert ranges_of(row, {RANGES: (forms_of.SEC_OFFSET, 16)}, data) == [(1, 2)]


MODERN = {
    "offsets": (b"\x04\x01\x02\x04\x05\x09", [(BASE + 1, BASE + 2), (BASE + 5, BASE + 9)]),
    "start and length": (b"\x07" + words(64) + b"\x08", [(64, 72)]),
    "start and end": (b"\x06" + words(64, 80), [(64, 80)]),
    "base": (b"\x05" + words(64) + b"\x04\x01\x02", [(65, 66)]),
    "base by index": (b"\x01\x01\x04\x01\x02", [(0x2001, 0x2002)]),
    "base by an index that is not there": (b"\x01\x63\x04\x01\x02", [(99 + 1, 99 + 2)]),
    "start by index and length": (b"\x03\x01\x08", [(0x2000, 0x2008)]),
    "start and end by index": (b"\x02\x00\x01", [(0x1000, 0x2000)]),
    "dropped start": (b"\x03\x02\x08\x04\x01\x02", [(BASE + 1, BASE + 2)]),
    "dropped base": (b"\x01\x02\x04\x01\x02", []),
    "dropped start and end": (b"\x06" + words(ALL_ONES, ALL_ONES), []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("case", MODERN.values(), ids=MODERN)
def test_lists_of_dwarf_5(case: tuple[bytes, list[tuple[int, int]]]) -> None:
    data, expected = case
    # A header, a table of one offset, and the list.
    table = bytes(8) + (4).to_bytes(4, "little") + data
    by_offset = {RANGES: (forms_of.SEC_OFFSET, 12)}
    by_index = {RANGES: (forms_of.RNGLISTX, 0)}
    assert ranges_of(unit(5), by_offset, lists=table + b"\0") == expected
    assert ranges_of(unit(5), by_index, lists=table + b"\0") == expected
    assert ranges_of(unit(5), by_offset, lists=table) == []  # cut
    assert ranges_of(unit(5), by_offset, lists=table + b"\x09\0") == []  # unknown entry


def test_addresses_of_a_list_may_be_4_bytes() -> None:
    row = unit(4, 16)
    row["address_size"] = 4
    data = b"".join(n.to_bytes(4, "little") for n in (1, 2, 0xFFFFFFFF, 64, 1, 2, 0, 0))
    assert ranges_of(row, {RANGES: (forms_of.SEC_OFFSET, 0)}, data) == [(17, 18), (65, 66)]


@pytest.mark.parametrize("offset", [1 << 20, ALL_ONES, ALL_ONES >> 1])
@pytest.mark.parametrize("form", [forms_of.SEC_OFFSET, forms_of.RNGLISTX])
@pytest.mark.parametrize("version", [4, 5])
def test_lists_outside_of_their_section_are_empty(version: int, form: int, offset: int) -> None:
    assert ranges_of(unit(version), {RANGES: (form, offset)}, bytes(64), bytes(64)) == []


def test_units_that_share_an_endless_list_are_cut() -> None:
    units = np.repeat(unit(4), 50)
    forms = np.zeros((50, FUNCTION_SLOTS), np.int16)
    forms[:, RANGES] = forms_of.SEC_OFFSET
    values = np.zeros((50, FUNCTION_SLOTS), np.uint64)
    data = words(*range(1, 41), 0, 0)
    sections = Sections(u8(b""), u8(b""), u8(b""), u8(data), u8(b""))
    wanted = np.ones(50, np.bool_)
    found, complete = unit_ranges(sections, units, wanted, forms, values, 100)
    assert not complete
    assert 100 < len(found) <= 120
    found, complete = unit_ranges(sections, units, wanted, forms, values, 5000)
    assert complete
    assert len(found) == 50 * 20
    assert found[:, 2].tolist() == sorted([*range(50)] * 20)
