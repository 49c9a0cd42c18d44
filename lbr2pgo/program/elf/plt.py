"""Entries of the procedure linkage table.

An entry jumps through a slot of the global offset table; the dynamic relocation against that slot
names the function (BOLT: RewriteInstance.cpp, disassemblePLT).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from lbr2pgo.program.elf.image import SHT_DYNSYM, Image, Section
from lbr2pgo.program.elf.relocations import RelaRows, dynamic_relocations

PLT_ENTRY_SIZES = {".plt": 16, ".plt.got": 8, ".plt.sec": 8, ".iplt": 16}
"""Sections with procedure linkage tables on x86-64 (BOLT: RewriteInstance.h)."""

_SYMBOL_SIZE = 24
_IRELATIVE = {"x86-64": 37, "aarch64": 1032}  # R_X86_64_IRELATIVE, R_AARCH64_IRELATIVE
_JUMP_THROUGH_MEMORY = b"\xff\x25"
_ENDBR64 = b"\xf3\x0f\x1e\xfa"

# Arm ARM, C6.2: ADRP, LDR (immediate), BR, NOP
_WORD = Struct("<I")
_ADRP_X16, _ADRP_MASK = 0x90000010, 0x9F00001F
_LDR_X17_X16, _LDR_MASK = 0xF9400211, 0xFFC003FF
_BR_X17, _NOP = 0xD61F0220, 0xD503201F


def plt_entries(image: Image) -> Iterator[tuple[Section, int, str | int | None]]:
    """Section, address and symbol of each entry; None stands for a table's head.

    A symbol is a name, or the address of the function that chooses one when the program starts.
    """
    slots = _slot_symbols(image)
    for section in image.sections:
        if section.name in PLT_ENTRY_SIZES and section.is_alloc and section.size:
            used = _used_slots(image, section)
            entries = {at: slots[slot] for at, slot in used if slot in slots}
            for address, symbol in entries.items():
                yield section, address, symbol
            if section.address not in entries:
                yield section, section.address, None


def _used_slots(image: Image, section: Section) -> Iterator[tuple[int, int]]:
    """Addresses of a section's entries, and of the slots that they jump through."""
    code = bytes(image.contents(section) or b"")
    if image.machine == "x86-64":
        return _used_slots_x86(code, section)
    return _used_slots_aarch64(code, section)


def _used_slots_x86(code: bytes, section: Section) -> Iterator[tuple[int, int]]:
    size = PLT_ENTRY_SIZES[section.name]
    if size == 8 and code.startswith(_ENDBR64):
        size = 16
    for at in range(0, len(code) - size + 1, size):
        jump = code.find(_JUMP_THROUGH_MEMORY, at, at + size - 4)
        if jump >= 0:
            displacement = int.from_bytes(code[jump + 2 : jump + 6], "little", signed=True)
            yield section.address + at, section.address + jump + 6 + displacement


def _used_slots_aarch64(code: bytes, section: Section) -> Iterator[tuple[int, int]]:
    """An entry is `adrp x16; ldr x17, [x16, …]; add x16; br x17`, perhaps with `bti` first."""
    start, page = section.address, 0
    for at, (word,) in enumerate(_WORD.iter_unpack(code[: len(code) // 4 * 4])):
        address = section.address + 4 * at
        if word == _NOP:
            start = address + 4 if start == address else start
        elif word & _ADRP_MASK == _ADRP_X16:
            distance = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
            page = (address & ~0xFFF) + ((distance ^ 1 << 20) - (1 << 20) << 12)
        elif word & _LDR_MASK == _LDR_X17_X16:
            yield start, page + 8 * (word >> 10 & 0xFFF)
        elif word == _BR_X17:
            start = address + 4


def _slot_symbols(image: Image) -> dict[int, str | int]:
    """Symbols whose addresses the loader writes into slots, by the slot's address.

    Without a `.dynamic` section BOLT looks into `.rela.dyn` alone.
    """
    static = image.section(".dynamic") is None
    rows = dynamic_relocations(image, only=".rela.dyn" if static else None)
    chosen = rows[rows["type"] == _IRELATIVE[image.machine]]
    return {
        **dict(zip(chosen["offset"].tolist(), chosen["addend"].tolist(), strict=True)),
        **_named_slots(image, rows[rows["symbol"] > 0]),
    }


def _named_slots(image: Image, rows: RelaRows) -> dict[int, str]:
    dynamic = next((s for s in image.sections if s.type == SHT_DYNSYM), None)
    if dynamic is None or dynamic.link >= len(image.sections):
        return {}
    symbols = bytes(image.contents(dynamic) or b"")
    strings = bytes(image.contents(image.sections[dynamic.link]) or b"")
    names: dict[int, str] = {}
    for slot, _, symbol, _ in rows.tolist():
        at = symbol * _SYMBOL_SIZE
        if at + 4 <= len(symbols):
            start = int.from_bytes(symbols[at : at + 4], "little")
            name = strings[start : strings.find(b"\0", start)]
            names[slot] = name.decode("utf-8", "surrogateescape")
    return names
