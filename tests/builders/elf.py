"""Builds small ELF files for x86-64 in Python: one executable segment and a symbol table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

TEXT_OFFSET = 0x1000


@dataclass(frozen=True)
class Function:
    """A function symbol."""

    name: str
    start: int
    size: int


def elf(code: bytes, address: int, functions: Sequence[Function], *, is_pie: bool = True) -> bytes:
    """An ELF file whose `.text` holds the code at an address that ends in 000."""
    assert address % 0x1000 == 0
    names = b"\0" + b"".join(f.name.encode() + b"\0" for f in functions)
    section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    symbols, name_at = bytes(24), 1
    for f in functions:
        symbols += struct.pack("<IBBHQQ", name_at, 1 << 4 | 2, 0, 1, f.start, f.size)
        name_at += len(f.name) + 1
    symbols_at = TEXT_OFFSET + len(code) + -len(code) % 8
    names_at = symbols_at + len(symbols)
    section_names_at = names_at + len(names)
    headers_at = section_names_at + len(section_names) + 8
    headers_at -= headers_at % 8
    sections = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", *header)
        for header in (
            (1, 1, 6, address, TEXT_OFFSET, len(code), 0, 0, 16, 0),
            (7, 2, 0, 0, symbols_at, len(symbols), 3, 1, 8, 24),
            (15, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
            (23, 3, 0, 0, section_names_at, len(section_names), 0, 0, 1, 0),
        )
    )
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3 if is_pie else 2, 62, 1, address, 64, headers_at,
        0, 64, 56, 1, 64, 5, 4,
    )  # fmt: skip
    head += struct.pack(
        "<IIQQQQQQ", 1, 5, TEXT_OFFSET, address, address, len(code), len(code), 0x1000
    )
    image = bytearray(headers_at + len(sections))
    parts = (
        (0, head), (TEXT_OFFSET, code), (symbols_at, symbols), (names_at, names),
        (section_names_at, section_names), (headers_at, sections),
    )  # fmt: skip
    for at, part in parts:
        image[at : at + len(part)] = part
    return bytes(image)
