"""Every attribute form: its size and its value."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.native import dwarf_forms as forms
from lbr2pgo.native.dwarf_forms import UNKNOWN, address_of, form_size, read_form

V5, V2, V5_64 = (5, 8, 4), (2, 8, 4), (5, 8, 8)
BYTES = bytes(range(1, 17))
LITTLE = {size: int.from_bytes(BYTES[:size], "little") for size in range(9)}


def read(data: bytes, form: int, unit: tuple[int, int, int] = V5) -> tuple[int, int, int]:
    form, value, position = read_form(
        np.frombuffer(data, np.uint8), 0, len(data), np.int64(form), *unit
    )
    return form, int(value), position


SIZED = {
    "addr": 8, "data1": 1, "data2": 2, "data4": 4, "data8": 8, "flag": 1, "strp": 4, "ref_addr": 4,
    "ref1": 1, "ref2": 2, "ref4": 4, "ref8": 8, "sec_offset": 4, "flag_present": 0, "ref_sup4": 4,
    "strp_sup": 4, "line_strp": 4, "ref_sig8": 8, "ref_sup8": 8, "strx1": 1, "strx2": 2,
    "strx3": 3, "strx4": 4, "addrx1": 1, "addrx2": 2, "addrx3": 3, "addrx4": 4, "gnu_ref_alt": 4,
    "gnu_strp_alt": 4,
}  # fmt: skip


@pytest.mark.parametrize(("name", "size"), SIZED.items())
def test_forms_of_one_size_are_little_endian_numbers(name: str, size: int) -> None:
    form = getattr(forms, name.upper())
    assert form_size(form, *V5) == size
    assert read(BYTES, form) == (form, LITTLE[size], size)
    if size:
        assert read(BYTES[: size - 1], form)[2] == -1


@pytest.mark.parametrize("name", ["strp", "sec_offset", "line_strp", "strp_sup", "ref_addr"])
def test_offsets_are_8_bytes_in_64_bit_dwarf(name: str) -> None:
    form = getattr(forms, name.upper())
    assert read(BYTES, form, V5_64) == (form, LITTLE[8], 8)


def test_a_reference_was_an_address_in_dwarf_2() -> None:
    assert form_size(forms.REF_ADDR, *V2) == 8


VARIABLE = {
    "udata": (b"\x85\x01", 133, 2),
    "sdata": (b"\x7f", (1 << 64) - 1, 1),
    "ref_udata": (b"\x85\x01", 133, 2),
    "strx": (b"\x85\x01", 133, 2),
    "addrx": (b"\x85\x01", 133, 2),
    "rnglistx": (b"\x85\x01", 133, 2),
    "loclistx": (b"\x85\x01", 133, 2),
    "gnu_addr_index": (b"\x85\x01", 133, 2),
    "gnu_str_index": (b"\x85\x01", 133, 2),
    "llvm_addrx_offset": (b"\x02\x05\0\0\0", (2 << 32) | 5, 5),
    "string": (b"ab\0", 0, 3),
    "block1": (b"\x02ab", 1, 3),
    "block2": (b"\x02\0ab", 2, 4),
    "block4": (b"\x02\0\0\0ab", 4, 6),
    "block": (b"\x02ab", 1, 3),
    "exprloc": (b"\x02ab", 1, 3),
    "data16": (BYTES, 0, 16),
}


@pytest.mark.parametrize(("name", "case"), VARIABLE.items())
def test_other_forms(name: str, case: tuple[bytes, int, int]) -> None:
    data, value, size = case
    form = getattr(forms, name.upper())
    assert read(data + b"rest", form) == (form, value, size)
    assert read(data[:-1], form)[2] == -1


def test_blocks_of_impossible_length_are_damage() -> None:
    assert read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01ab", forms.EXPRLOC)[2] == -1


def test_indirect_forms_name_their_form_first() -> None:
    assert read(b"\x0b\x2a", forms.INDIRECT) == (forms.DATA1, 42, 2)
    assert read(b"\x16\x16\x0b\x2a", forms.INDIRECT) == (forms.DATA1, 42, 4)
    assert read(b"\x16" * 8, forms.INDIRECT)[2] == -1


@pytest.mark.parametrize("form", [0, 0x02, 0x2D, 0x1F03, 0x7FFF])
def test_unknown_forms_are_told_apart_from_damage(form: int) -> None:
    assert form_size(form, *V5) == UNKNOWN
    assert read(BYTES, form)[2] == UNKNOWN


def test_every_form_that_pyelftools_knows_is_known() -> None:
    from elftools.dwarf.enums import ENUM_DW_FORM

    numbers = {name: form for name, form in ENUM_DW_FORM.items() if name.startswith("DW_FORM_")}
    unknown = {name for name, form in numbers.items() if form_size(form, *V5) == UNKNOWN}
    assert unknown == {"DW_FORM_null", "DW_FORM_ref"}  # none, and one of DWARF 1
    assert len(numbers) > 40


ADDR = np.frombuffer(b"".join(n.to_bytes(8, "little") for n in (0, 0x1000, 0x2000)), np.uint8)


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        (forms.ADDR, 0x77, (True, 0x77)),
        (forms.ADDRX, 1, (True, 0x2000)),
        (forms.ADDRX4, 0, (True, 0x1000)),
        (forms.GNU_ADDR_INDEX, 0, (True, 0x1000)),
        (forms.LLVM_ADDRX_OFFSET, (1 << 32) | 4, (True, 0x2004)),
        (forms.ADDRX, 2, (False, 0)),
        (forms.ADDRX, (1 << 64) - 1, (False, 0)),
        (forms.DATA8, 5, (False, 0)),
    ],
)
def test_addresses_may_stand_in_a_table(form: int, value: int, expected: tuple[bool, int]) -> None:
    assert address_of(ADDR, np.int16(form), np.uint64(value), 8, 8) == expected
