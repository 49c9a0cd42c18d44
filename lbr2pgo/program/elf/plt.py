"""Entries of the procedure linkage table.

An entry jumps through a slot of the global offset table; the dynamic relocation against that slot
names the function (BOLT: RewriteInstance.cpp, disassemblePLT).
"""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.program.elf.headers import SHT_DYNSYM, Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import RelaRows, dynamic_relocations
from lbr2pgo.program.elf.symbols import Symbols

PLT_ENTRY_SIZES = {".plt": 16, ".plt.got": 8, ".plt.sec": 8, ".iplt": 16}
"""Sections with procedure linkage tables on x86-64 (BOLT: RewriteInstance.h)."""

_SYMBOL_SIZE = 24


def plt_entries(image: Image) -> Iterator[tuple[Section, int, str | int | None]]:
    """Section, address and symbol of each entry; None stands for a table's head.

    A symbol is a name, or the address of the function that chooses one when the program starts.
    """
    slots = _slot_symbols(image)
    for section in image.sections:
        if section.name in PLT_ENTRY_SIZES and section.is_alloc and section.size:
            code = bytes(image.contents(section) or b"")
            size = PLT_ENTRY_SIZES[section.name]
            used = image.architecture.plt_slots(code, section.address, size)
            entries = {at: slots[slot] for at, slot in used if slot in slots}
            for address, symbol in entries.items():
                yield section, address, symbol
            if section.address not in entries:
                yield section, section.address, None


def stub_names(image: Image, symbols: Symbols) -> dict[int, str]:
    """What objdump and gdb call the entries, by address: `memcmp@plt`, a table's head `.plt`.

    Where the loader calls a function to choose the target, that function's symbol names both.
    """
    entries = list(plt_entries(image))
    chosen = symbols.function_at([symbol for *_, symbol in entries if isinstance(symbol, int)])
    names: dict[int, str] = {}
    for section, address, symbol in entries:
        if symbol is None:
            names[address] = section.name
        elif isinstance(symbol, str):
            names[address] = f"{symbol}@plt"
        else:
            names[address] = f"{chosen.get(symbol, f'*ABS*+{symbol:#x}')}@plt"
    return names


def _slot_symbols(image: Image) -> dict[int, str | int]:
    """Symbols whose addresses the loader writes into slots, by the slot's address.

    Without a `.dynamic` section BOLT looks into `.rela.dyn` alone.
    """
    static = image.section(".dynamic") is None
    rows = dynamic_relocations(image, only=".rela.dyn" if static else None)
    chosen = rows[rows["type"] == image.architecture.relocations.irelative]
    return {
        **dict(zip(chosen["offset"].tolist(), chosen["addend"].tolist(), strict=True)),
        **_named_slots(image, rows[rows["symbol"] > 0]),
    }


def _named_slots(image: Image, rows: RelaRows) -> dict[int, str]:
    dynamic = next((s for s in image.sections if s.type == SHT_DYNSYM), None)
    if dynamic is None or dynamic.link >= len(image.sections):
        return {}
    symbols = bytes(image.contents(dynamic) or b"")
    strings = image.strings(dynamic.link)
    names: dict[int, str] = {}
    for slot, _, symbol, _ in rows.tolist():
        at = symbol * _SYMBOL_SIZE
        if at + 4 <= len(symbols):
            start = int.from_bytes(symbols[at : at + 4], "little")
            name = strings[start : strings.find(b"\0", start)]
            names[slot] = name.decode("utf-8", "surrogateescape")
    return names
