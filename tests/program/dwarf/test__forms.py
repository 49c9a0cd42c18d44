"""Every attribute form, as DIEs by hand show it: how long it is, and what it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from builders.dwarf import FORMS, abbreviation, dwarf, sleb, uleb, unit, words
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf._functions import describe, subprogram_ranges
from lbr2pgo.program.dwarf._units import COMPLETE, DAMAGED, ODD_FORM
from lbr2pgo.program.dwarf.unit import Dwarf

ROOT = abbreviation(1, "compile_unit", children=True)
HEADER = {(4, 4): 11, (2, 4): 11, (5, 4): 12, (5, 8): 24}
"""Bytes of a unit's header, by version and size of offsets."""

BYTES = bytes(range(1, 17))
SIZED = {
    "addr": 8, "data1": 1, "data2": 2, "data4": 4, "data8": 8, "flag": 1, "strp": 4, "ref_addr": 4,
    "ref1": 1, "ref2": 2, "ref4": 4, "ref8": 8, "sec_offset": 4, "flag_present": 0, "ref_sup4": 4,
    "strp_sup": 4, "line_strp": 4, "ref_sig8": 8, "ref_sup8": 8, "strx1": 1, "strx2": 2,
    "strx3": 3, "strx4": 4, "addrx1": 1, "addrx2": 2, "addrx3": 3, "addrx4": 4, "GNU_ref_alt": 4,
    "GNU_strp_alt": 4, "data16": 16,
}  # fmt: skip
VARIABLE = {
    "udata": b"\x85\x01", "sdata": b"\x7f", "ref_udata": b"\x85\x01", "strx": b"\x85\x01",
    "addrx": b"\x85\x01", "rnglistx": b"\x85\x01", "loclistx": b"\x85\x01",
    "GNU_addr_index": b"\x85\x01", "GNU_str_index": b"\x85\x01",
    "LLVM_addrx_offset": b"\x82\x01\x05\0\0\0", "string": b"ab\0", "block1": b"\x02ab",
    "block2": b"\x02\0ab", "block4": b"\x02\0\0\0ab", "block": b"\x02ab", "exprloc": b"\x82\0ab",
    "indirect": b"\x16\x0b\x2a",
}  # fmt: skip
VALUES = {name: BYTES[:size] for name, size in SIZED.items()} | VARIABLE


def read_behind(
    form: str, value: bytes, *, version: int = 5, offset_size: int = 4, cut: int = 0
) -> tuple[int, int, list[list[int]]]:
    """Read a value as part of a description, and pass over it in a walk.

    The line that the value's DIE says behind it, how a walk over it ended, and the ranges of the
    function that follows it.
    """
    table = (
        ROOT
        + abbreviation(2, "variable", ("decl_column", form), ("decl_line", "data1"))
        + abbreviation(3, "subprogram", ("low_pc", "addr"), ("high_pc", "data1"))
        + b"\0"
    )
    first = HEADER[version, offset_size] + 1
    dies = b"\x01\x02" + value + b"\x2a" + b"\x03" + words(0x1000) + b"\x10\0"
    dies = dies[: len(dies) - cut]
    whole = unit(dies, version=version, offset_size=offset_size)
    file = dwarf(info=whole, abbrev=table)
    file.load([0])
    described = describe(file.with_dies(0), file.units, 0, file.abbreviations, np.array([first]))
    ranges, ending = subprogram_ranges(file.with_dies(0), file.units, 0, file.abbreviations, 99)
    return int(described["decl_line"][0]), ending, ranges[["low", "high"]].tolist()


@pytest.mark.parametrize("form", VALUES)
def test_what_stands_behind_a_value_is_read(form: str) -> None:
    assert read_behind(form, VALUES[form]) == (42, COMPLETE, [(0x1000, 0x1010)])


@pytest.mark.parametrize("form", [form for form in VALUES if form != "flag_present"])
def test_a_value_that_is_cut_ends_the_reading(form: str) -> None:
    rest = 1 + 1 + 8 + 1 + 1  # the line, and the function behind
    assert read_behind(form, VALUES[form], cut=rest + 1) == (0, DAMAGED, [])


@pytest.mark.parametrize("form", ["strp", "sec_offset", "line_strp", "strp_sup", "ref_addr"])
def test_offsets_are_8_bytes_in_64_bit_dwarf(form: str) -> None:
    assert read_behind(form, BYTES[:8], offset_size=8)[0] == 42


def test_a_reference_was_an_address_in_dwarf_2() -> None:
    assert read_behind("ref_addr", BYTES[:8], version=2)[0] == 42
    assert read_behind("ref_addr", BYTES[:4], version=4)[0] == 42


def test_blocks_of_impossible_length_are_damage() -> None:
    length = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert read_behind("exprloc", length + b"ab") == (0, DAMAGED, [])


def test_indirect_forms_that_never_name_theirs_are_damage() -> None:
    assert read_behind("indirect", b"\x16" * 8, cut=12)[1] == DAMAGED


@pytest.mark.parametrize("form", [0x02, 0x2D, 0x1F03, 0x7FFF, 1 << 40])
def test_unknown_forms_are_told_apart_from_damage(
    form: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMS, "odd", form)
    assert read_behind("odd", BYTES) == (0, ODD_FORM, [])
    assert read_behind("indirect", uleb(form) + BYTES) == (0, ODD_FORM, [])


def test_every_form_that_pyelftools_knows_is_known() -> None:
    assert set(FORMS) - set(VALUES) == {
        "null", "ref",  # none, and one of DWARF 1
        "implicit_const",  # has no bytes here
    }  # fmt: skip


def line_of(form: str, value: bytes, *constant: int) -> int:
    table = ROOT + abbreviation(2, "subprogram", ("decl_line", form, *constant)) + b"\0"
    file = dwarf(info=unit(b"\x01\x02" + value), abbrev=table)
    file.load([0])
    rows = describe(file.with_dies(0), file.units, 0, file.abbreviations, np.array([12]))
    return int(rows["decl_line"][0])


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 12))
def test_constants_are_cut_to_32_bits(number: int, padding: int) -> None:
    expected = number & 0xFFFFFFFF
    for size in (1, 2, 4, 8):
        fitting = number & ((1 << 8 * size) - 1)
        assert line_of(f"data{size}", words(fitting, size=size)) == fitting & 0xFFFFFFFF
    plain = uleb(number)
    padded = plain[:-1] + bytes([plain[-1] | 0x80]) + b"\x80" * padding + b"\0"
    assert line_of("udata", plain) == line_of("udata", padded) == expected
    assert line_of("indirect", uleb(FORMS["udata"]) + plain) == expected


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_constants_in_declarations_are_signed(number: int) -> None:
    assert line_of("implicit_const", b"", number) == number & 0xFFFFFFFF


@pytest.mark.parametrize(("form", "value"), [("sdata", b"\x05"), ("strp", words(5, size=4))])
def test_what_is_no_unsigned_constant_counts_as_0(form: str, value: bytes) -> None:
    assert line_of(form, value) == 0


ADDRESSES = (0x1000, 0x2000)
FAR = (1 << 64) - 1


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("addr", words(0x77), [0x77]),
        ("addrx", uleb(1), [0x2000]),
        ("addrx1", b"\x01", [0x2000]),
        ("addrx4", words(0, size=4), [0x1000]),
        ("GNU_addr_index", uleb(0), [0x1000]),
        ("LLVM_addrx_offset", uleb(1) + words(4, size=4), [0x2004]),
        ("addrx", uleb(2), []),
        ("addrx", uleb(FAR), []),
        ("data8", words(5), []),
    ],
)
def test_addresses_may_stand_in_a_table(form: str, value: bytes, expected: list[int]) -> None:
    table = (
        abbreviation(1, "compile_unit", ("addr_base", "sec_offset"), children=True)
        + abbreviation(2, "subprogram", ("low_pc", form), ("high_pc", "data1"))
        + b"\0"
    )
    info = unit(b"\x01" + words(8, size=4) + b"\x02" + value + b"\x10", version=5)
    file = dwarf(info=info, abbrev=table, addr=bytes(8) + words(*ADDRESSES))
    file.load([0])
    found, _ = subprogram_ranges(file.with_dies(0), file.units, 0, file.abbreviations, 9)
    assert found["low"].tolist() == expected


def name_of(form: str, value: bytes, version: int = 5, **sections: bytes) -> str | None:
    table = (
        abbreviation(1, "compile_unit", ("str_offsets_base", "sec_offset"), children=True)
        + abbreviation(2, "subprogram", ("name", form))
        + b"\0"
    )
    supplement = dwarf(str=b"\0moved\0")
    info = unit(b"\x01" + words(8, size=4) + b"\x02" + value, version=version)
    file: Dwarf = dwarf(info=info, abbrev=table, supplement=supplement, **STRINGS | sections)
    file.load([0])
    at = np.array([HEADER[version, 4] + 5])
    rows = describe(file.with_dies(0), file.units, 0, file.abbreviations, at)
    return file.text(rows["name"][0])


STRINGS = {
    "str": b"\0main\0",
    "line_str": b"\0line\0",
    "str_offsets": bytes(8) + words(0, 1, 9, size=4),
}


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("string", b"here\0", "here"),
        ("strp", words(1, size=4), "main"),
        ("strp", words(0, size=4), ""),
        ("line_strp", words(2, size=4), "ine"),
        ("strx", uleb(1), "main"),
        ("strx1", b"\x01", "main"),
        ("strx3", words(1, size=3), "main"),
        ("GNU_str_index", uleb(1), "main"),
        ("strp_sup", words(1, size=4), "moved"),
        ("GNU_strp_alt", words(1, size=4), "moved"),
        ("strp", words(7, size=4), None),
        ("strx", uleb(2), None),
        ("strx", uleb(3), None),
        ("strx", uleb(FAR), None),
        ("data4", words(1, size=4), None),
    ],
)
def test_strings_stand_in_place_or_in_other_sections(
    form: str, value: bytes, expected: str | None
) -> None:
    assert name_of(form, value) == expected


def test_signed_numbers_are_written_as_they_are_read() -> None:
    """The writer of the tests, against the definition."""
    assert (sleb(-2), sleb(127), sleb(-128), uleb(12857)) == (
        b"\x7e", b"\xff\x00", b"\x80\x7f", b"\xb9\x64",
    )  # fmt: skip
