"""Writes DWARF by hand, with pyelftools' names for tags, attributes and forms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from elftools.dwarf.enums import ENUM_DW_AT, ENUM_DW_FORM, ENUM_DW_TAG

from lbr2pgo.program.dwarf.section import SectionInMemory
from lbr2pgo.program.dwarf.unit import Dwarf, GetSection

FORMS = {
    name.removeprefix("DW_FORM_"): number
    for name, number in ENUM_DW_FORM.items()
    if name.startswith("DW_FORM_")
} | {"LLVM_addrx_offset": 0x2001}

Spec = tuple[str, str] | tuple[str, str, int]
"""An attribute, its form and, if it is `implicit_const`, the value; without `DW_AT_` and so on."""


def u8(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def u64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def words(*numbers: int, size: int = 8) -> bytes:
    return b"".join(number.to_bytes(size, "little") for number in numbers)


def uleb(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + uleb(high) if high else bytes([low])


def sleb(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low]) if high == -(low >> 6) else bytes([low | 0x80]) + sleb(high)


def abbreviation(code: int, tag: str, *specs: Spec, children: bool = False) -> bytes:
    """One declaration; a table ends with a zero."""
    out = uleb(code) + uleb(ENUM_DW_TAG[f"DW_TAG_{tag}"]) + bytes([children])
    for attribute, form, *constant in specs:
        out += uleb(ENUM_DW_AT[f"DW_AT_{attribute}"]) + uleb(FORMS[form])
        out += b"".join(map(sleb, constant))
    return out + b"\0\0"


def unit(
    dies: bytes,
    *,
    version: int = 4,
    address_size: int = 8,
    offset_size: int = 4,
    abbrev: int = 0,
    kind: int = 1,
    rest: bytes = b"",
) -> bytes:
    """A unit of .debug_info; `rest` is what its kind adds to the header."""
    at = abbrev.to_bytes(offset_size, "little")
    size = bytes([address_size])
    header = bytes([kind]) + size + at + rest if version >= 5 else at + size
    body = version.to_bytes(2, "little") + header + dies
    length = len(body).to_bytes(offset_size, "little")
    return (b"\xff" * 4 if offset_size == 8 else b"") + length + body


def dwarf(*, supplement: Dwarf | None = None, **sections: bytes) -> Dwarf:
    """A file with these sections, named without `.debug_`."""
    return Dwarf("by hand", in_memory(sections), supplement=supplement)


def in_memory(sections: Mapping[str, bytes]) -> GetSection:
    """A getter of sections, named without `.debug_`."""
    return lambda name: SectionInMemory(u8(sections.get(name, b"")))
