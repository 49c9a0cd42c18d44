"""Units, their abbreviations, and what `.debug_aranges` says of them, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from builders.dwarf import abbreviation, dwarf, in_memory, u8, unit, words

from lbr2pgo.program.dwarf._functions import subprogram_ranges
from lbr2pgo.program.dwarf._units import (
    COMPLETE,
    NO_DECLARATION,
    Sections,
    read_aranges,
    read_units,
)
from lbr2pgo.program.dwarf.unit import NO_PACKAGE, Dwarf

ROOT = abbreviation(1, "compile_unit", ("name", "string"), ("stmt_list", "sec_offset")) + b"\0"
DIE = b"\x01main.c\0" + words(64, size=4)


def test_units_follow_each_other() -> None:
    first, second = unit(DIE), unit(DIE + bytes(4), version=5, offset_size=8)
    found = dwarf(info=first + second, abbrev=ROOT)
    assert found.units["offset"].tolist() == [0, len(first)]
    assert found.units["die"].tolist() == [11, len(first) + 24]
    assert found.units["end"].tolist() == [len(first), len(first + second)]
    assert found.units["lines"].tolist() == [64, 64]
    assert found.unread == 0


@pytest.mark.parametrize(
    "info",
    [
        b"\x05\0\0",  # cut in the length
        b"\xff\0\0\0\x04\0" + bytes(5),  # longer than the section
        b"\x08\0\0\0\x09\0" + bytes(6),  # version 9
        b"\x08\0\0\0\x04\0" + bytes(4) + b"\x03\0",  # addresses of 3 bytes
        b"\x03\0\0\0\x04\0\0",  # too short for its header
        b"\xf3\xff\xff\xff" + bytes(20),  # a reserved length
        b"\xff\xff\xff\xff" + b"\xff" * 8 + bytes(20),
        b"\xff\xff\xff\xff\x03",
    ],
)
def test_reading_stops_at_a_header_that_makes_no_sense(info: bytes) -> None:
    found = dwarf(info=unit(DIE) + info, abbrev=ROOT)
    assert len(found.units) == 1
    assert found.unread == len(info)


@pytest.mark.parametrize(
    ("kind", "rest", "is_type", "dwo_id"),
    [
        (1, b"", 0, None),
        (2, bytes(12), 1, None),
        (4, words(77), 0, 77),
        (5, words(77), 0, 77),
        (6, bytes(12), 1, None),
    ],
)
def test_kinds_of_units_have_headers_of_their_own(
    kind: int, rest: bytes, is_type: int, dwo_id: int | None
) -> None:
    row = dwarf(info=unit(DIE, version=5, kind=kind, rest=rest), abbrev=ROOT).units[0]
    assert (row["is_type"], row["has_dwo_id"], row["lines"]) == (is_type, dwo_id is not None, 64)
    assert dwo_id is None or row["dwo_id"] == dwo_id


def test_a_package_says_where_the_parts_of_its_units_start() -> None:
    root = abbreviation(1, "compile_unit", ("dwo_name", "strx1")) + b"\0"
    first, second = unit(DIE, version=5), unit(b"\x01\x00", version=5)
    sections = {
        "info": first + second,
        "abbrev": ROOT + root,
        "str": b"\0name\0",
        "str_offsets": bytes(40) + words(1, size=4),
    }
    # Of .debug_info, .debug_abbrev, .debug_str_offsets and .debug_rnglists.
    index = np.array([[0, 0, 0, 0], [len(first), len(ROOT), 32, 64]], np.int64)
    found = Dwarf("by hand", in_memory(sections), package=index)
    assert found.units["abbrev"].tolist() == [0, len(ROOT)]
    assert found.units["rnglists_base"].tolist() == [12, 76]
    assert found.text(found.units["dwo_name"][1]) == "name"
    alone = Dwarf("by hand", in_memory(sections), package=NO_PACKAGE)
    assert alone.text(alone.units["dwo_name"][1]) is None


FUNCTION = b"\x02" + words(0x1000) + b"\x10"


def ending_with(table: bytes, dies: bytes) -> int:
    found = dwarf(info=unit(dies), abbrev=table)
    found.load([0])
    return subprogram_ranges(found.with_dies(0), found.units, 0, found.abbreviations, 9)[1]


@pytest.mark.parametrize("code", [2, 5, 1 << 40])
def test_declarations_are_found_by_code_in_any_order(code: int) -> None:
    others = abbreviation(9, "variable") + abbreviation(7, "variable")
    table = abbreviation(1, "compile_unit", children=True) + others
    table += abbreviation(code, "base_type") + b"\0"
    assert ending_with(table, b"\x01\x09\x07" + encode(code) + b"\0") == COMPLETE
    assert ending_with(table, b"\x01\x03\0") == NO_DECLARATION


def encode(code: int) -> bytes:
    return abbreviation(code, "base_type").split(b"\x24\0\0\0")[0]


def test_of_two_declarations_of_one_code_the_first_counts() -> None:
    twice = abbreviation(2, "variable", ("decl_line", "data2")) + abbreviation(2, "variable")
    table = abbreviation(1, "compile_unit", children=True) + twice + b"\0"
    assert ending_with(table, b"\x01\x02\xff\xff\0") == COMPLETE


def test_units_share_the_tables_that_they_refer_to() -> None:
    found = dwarf(info=unit(DIE) * 3, abbrev=ROOT)
    found.load([0, 1])
    assert len(found.abbreviations) == 1
    assert found.units["first_abbreviation"].tolist() == [0, 0, -1]


def test_tables_that_overlap_over_and_over_are_read_no_more() -> None:
    table = b"\x01\x2e\0\0\0" * 200 + b"\0"
    info = b"".join(unit(b"\x01", abbrev=5 * start) for start in range(100)) + unit(b"\x01")
    found = dwarf(info=info, abbrev=table)
    found.load(range(101))
    rows = found.units["abbreviations"].tolist()
    assert rows[:3] == [200, 199, 198]
    assert rows[99] == 0
    assert len(found.abbreviations) < 2 * len(table)
    assert rows[100] == 200


NOTHING = b""


def read_in_parts(
    info: bytes, size: int, *, table: bytes = ROOT, ranges: bytes = b"", limit: int = 1000
) -> tuple[list[int], list[tuple[int, int, int]], int]:
    """Offsets of units, their ranges and the end, reading at least `size` bytes at a time."""
    sections = Sections(*map(u8, (table, NOTHING, ranges, NOTHING, NOTHING)))
    offsets: list[int] = []
    found: list[tuple[int, int, int]] = []
    position, end, budget = 0, size, 1 << 20
    while end > 0:
        part = u8(info[position : max(end, position + size)])
        units, claimed, position, end, budget = read_units(
            sections.with_info(part, position, len(info)),
            NO_PACKAGE, position, len(offsets), budget, limit - len(found),
        )  # fmt: skip
        offsets += units["offset"].tolist()
        found += claimed.tolist()
    return offsets, found, position


@pytest.mark.parametrize("size", [1, 11, 40, 64, 1000])
def test_units_may_be_read_part_by_part(size: int) -> None:
    info = unit(DIE) + unit(DIE + bytes(100)) + unit(DIE)
    offsets = [0, len(unit(DIE)), len(info) - len(unit(DIE))]
    assert read_in_parts(info, size) == (offsets, [], len(info))
    assert read_in_parts(info + b"\x09", size) == (offsets, [], len(info))
    cut = unit(b"\x01main.c")  # of the last name there is no end, wherever reading starts
    assert read_in_parts(info + cut, size) == ([*offsets, len(info)], [], len(info + cut))


def test_root_dies_say_what_their_units_claim() -> None:
    root = abbreviation(1, "compile_unit", ("low_pc", "addr"), ("high_pc", "data1")) + b"\0"
    plain = unit(b"\x01" + words(16) + b"\x08", version=5)
    of_types = unit(b"\x01" + words(16) + b"\x08", version=5, kind=2, rest=bytes(12))
    _, ranges, _ = read_in_parts(plain + of_types + plain, 40, table=root)
    assert ranges == [(16, 24, 0), (16, 24, 2)]


def test_units_that_share_an_endless_list_are_cut() -> None:
    root = abbreviation(1, "compile_unit", ("ranges", "sec_offset")) + b"\0"
    lists = words(*range(1, 41), 0, 0)
    info = unit(b"\x01" + words(0, size=4)) * 50
    offsets, ranges, _ = read_in_parts(info, 40, table=root, ranges=lists, limit=100)
    assert len(offsets) == 50
    assert 100 < len(ranges) <= 120
    _, ranges, _ = read_in_parts(info, 40, table=root, ranges=lists, limit=5000)
    assert len(ranges) == 50 * 20
    assert [owner for *_, owner in ranges] == sorted([*range(50)] * 20)


def test_units_of_a_file_share_one_limit_however_many_parts_it_is_read_in() -> None:
    root = abbreviation(1, "compile_unit", ("ranges", "sec_offset")) + b"\0"
    lists = words(*range(1, 1001), 0, 0)
    found = dwarf(info=unit(b"\x01" + words(0, size=4)) * 2000, abbrev=root, ranges=lists)
    assert found.range_limit < len(found.claims().starts) <= found.range_limit + 500
    assert len(found.units) == 2000


def test_root_dies_that_are_declared_far_away_are_looked_for_only_so_long() -> None:
    table = b"".join(abbreviation(code, "base_type") for code in range(2, 400)) + ROOT
    sections = Sections(*map(u8, (table, NOTHING, NOTHING, NOTHING, NOTHING)))
    info = unit(DIE) * 9
    units, _, _, _, budget = read_units(
        sections.with_info(u8(info), 0, len(info)), NO_PACKAGE, 0, 0, 4 * len(table), 9
    )
    assert (units["lines"] == 64).tolist() == [True] * 4 + [False] * 5
    assert budget <= 0


def arange_set(unit: int, *pairs: int, size: int = 8, segment: int = 0) -> bytes:
    header = words(2, size=2) + words(unit, size=4) + bytes([size, segment])
    padding = bytes(-(4 + len(header)) % (2 * size))
    body = header + padding + words(*pairs, 0, 0, size=size)
    return words(len(body), size=4) + body


def read(data: bytes) -> tuple[list[int], list[tuple[int, int, int]]]:
    listed, ranges = read_aranges(u8(data))
    return listed.tolist(), ranges.tolist()


@pytest.mark.parametrize("size", [4, 8])
def test_sets_of_aranges_follow_each_other(size: int) -> None:
    data = arange_set(7, 16, 4, 64, 8, size=size) + arange_set(99, 32, 1, size=size)
    assert read(data) == ([7, 99], [(16, 20, 7), (64, 72, 7), (32, 33, 99)])


@pytest.mark.parametrize(
    "bad",
    [
        arange_set(9, 1, 1, segment=1),
        arange_set(9, 1, 1, size=8)[:-1],
        arange_set(9, 1, 1, size=8)[:7],
        b"\xf5\xff\xff\xff" + bytes(40),
        arange_set(9, 1, 1)[:-16] + b"\x01" * 16,  # not ended by zeros
        words(8, size=4) + words(2, size=2) + words(9, size=4) + b"\x08\0",  # without any pair
    ],
)
def test_a_damaged_set_ends_the_reading(bad: bytes) -> None:
    assert read(arange_set(7, 16, 4) + bad + arange_set(8, 1, 2)) == ([7], [(16, 20, 7)])


def test_a_set_may_list_nothing() -> None:
    assert read(arange_set(7) + arange_set(8, 1, 2)) == ([7, 8], [(1, 3, 8)])


def test_sets_may_be_of_64_bit_dwarf() -> None:
    header = words(2, size=2) + words(7) + b"\x08\0"
    body = header + bytes(-(12 + len(header)) % 16) + words(16, 4, 0, 0)
    assert read(b"\xff" * 4 + words(len(body)) + body) == ([7], [(16, 20, 7)])
