"""Address ranges of DIEs, entry by entry."""

from __future__ import annotations

import pytest
from builders.dwarf import Spec, abbreviation, dwarf, uleb, unit, words

from lbr2pgo.program.dwarf._functions import subprogram_ranges

ALL_ONES = (1 << 64) - 1
BASE = 0x10000
ADDRESSES = words(0x1000, 0x2000, ALL_ONES)


def ranges_of(
    version: int,
    specs: tuple[Spec, ...],
    values: bytes,
    *,
    ranges: bytes = b"",
    lists: bytes = b"",
    address_size: int = 8,
    base: int = BASE,
    ranges_base: int = 0,
) -> list[tuple[int, int]]:
    """Ranges of a function whose unit starts at `base`."""
    root: tuple[Spec, ...] = (("low_pc", "addr"), ("addr_base", "sec_offset"))
    table = abbreviation(1, "compile_unit", *root, children=True)
    table += abbreviation(2, "subprogram", *specs) + b"\0"
    dies = b"\x01" + words(base, size=address_size) + words(0, size=4) + b"\x02" + values + b"\0"
    info = unit(dies, version=version, address_size=address_size)
    file = dwarf(info=info, abbrev=table, addr=ADDRESSES, ranges=ranges, rnglists=lists)
    file.units["ranges_base"] = ranges_base
    file.load([0])
    found, _ = subprogram_ranges(file.with_dies(0), file.units, 0, file.abbreviations, 1000)
    return found[["low", "high"]].tolist()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (("addr", words(16)), ("addr", words(32)), [(16, 32)]),
        (("addr", words(16)), ("data4", words(32, size=4)), [(16, 48)]),
        (("addr", words(16)), ("udata", uleb(32)), [(16, 48)]),
        (("addrx", uleb(0)), ("data1", b"\x20"), [(0x1000, 0x1020)]),
        (("addrx1", b"\x00"), ("addrx1", b"\x01"), [(0x1000, 0x2000)]),
        (("addr", words(0)), ("data4", words(32, size=4)), [(0, 32)]),
        (("addr", words(ALL_ONES)), ("data4", words(32, size=4)), []),
        (("addrx", uleb(2)), ("data4", words(32, size=4)), []),
        (("addrx", uleb(9)), ("data4", words(32, size=4)), []),
        (("addr", words(16)), ("addrx", uleb(9)), []),
        (("addr", words(16)), ("exprloc", b"\x01\x20"), []),
        (("data8", words(16)), ("data4", words(32, size=4)), []),
    ],
)
def test_low_and_high_pc(
    low: tuple[str, bytes], high: tuple[str, bytes], expected: list[tuple[int, int]]
) -> None:
    specs = ("low_pc", low[0]), ("high_pc", high[0])
    assert ranges_of(5, specs, low[1] + high[1]) == expected


def test_of_a_low_pc_alone_nothing_is_known() -> None:
    assert ranges_of(5, (("low_pc", "addr"),), words(16)) == []


CLASSIC = {
    "relative to the unit": (words(1, 2, 5, 9), [(BASE + 1, BASE + 2), (BASE + 5, BASE + 9)]),
    "another base": (words(1, 2, ALL_ONES, 0x50, 1, 2), [(BASE + 1, BASE + 2), (0x51, 0x52)]),
    "dropped code": (words(ALL_ONES - 1, ALL_ONES - 1, 1, 2), [(BASE + 1, BASE + 2)]),
    "base of dropped code": (words(ALL_ONES, ALL_ONES - 1, 1, 2), []),
    "nothing": (b"", []),
}
OFFSET: tuple[Spec, ...] = (("ranges", "sec_offset"),)


@pytest.mark.parametrize("case", CLASSIC.values(), ids=CLASSIC)
@pytest.mark.parametrize("before", [0, 24])
def test_lists_before_dwarf_5(case: tuple[bytes, list[tuple[int, int]]], before: int) -> None:
    data, expected = case
    at = words(before, size=4)
    assert ranges_of(4, OFFSET, at, ranges=bytes(before) + data + words(0, 0)) == expected
    assert ranges_of(4, OFFSET, at, ranges=bytes(before) + data) == []  # cut


def test_lists_of_a_split_unit_count_from_its_part_of_the_section() -> None:
    data = bytes(32) + words(9, 9) + words(1, 2, 0, 0)
    found = ranges_of(4, OFFSET, words(16, size=4), ranges=data, base=0, ranges_base=32)
    assert found == [(1, 2)]


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
    lists = bytes(12) + words(4, size=4) + data
    by_offset, by_index = (OFFSET, words(16, size=4)), ((("ranges", "rnglistx"),), b"\x00")
    for specs, value in (by_offset, by_index):
        assert ranges_of(5, specs, value, lists=lists + b"\0") == expected
        assert ranges_of(5, specs, value, lists=lists) == []  # cut
        assert ranges_of(5, specs, value, lists=lists + b"\x09\0") == []  # unknown entry


def test_addresses_of_a_list_may_be_4_bytes() -> None:
    data = words(1, 2, 0xFFFFFFFF, 64, 1, 2, 0, 0, size=4)
    at = words(0, size=4)
    found = ranges_of(4, OFFSET, at, ranges=data, address_size=4, base=16)
    assert found == [(17, 18), (65, 66)]


@pytest.mark.parametrize("offset", [1 << 20, ALL_ONES, ALL_ONES >> 1])
@pytest.mark.parametrize("form", ["data8", "rnglistx"])
@pytest.mark.parametrize("version", [4, 5])
def test_lists_outside_of_their_section_are_empty(version: int, form: str, offset: int) -> None:
    value = words(offset) if form == "data8" else uleb(offset)
    specs: tuple[Spec, ...] = (("ranges", form),)
    for ranges_base in (0, 1 << 60, -1):
        found = ranges_of(
            version, specs, value, ranges=bytes(64), lists=bytes(64), ranges_base=ranges_base
        )
        assert found == []
