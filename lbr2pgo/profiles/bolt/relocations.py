"""What relocations tell BOLT of places in code (BOLT: RewriteInstance.cpp, handleRelocation).

An address of code kept in data is a label. Where the linker kept its relocations too
(`--emit-relocs`), they also tell jump tables, which hold distances to code, from other data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.program.elf.headers import SHT_SYMTAB, Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import (
    SHT_RELA,
    RelaRows,
    dynamic_relocations,
    read_rela,
    relative_targets,
)
from lbr2pgo.support.arrays import U64, Bools
from lbr2pgo.support.distinct import distinct

_ABSOLUTE = {
    "x86-64": (1, 10, 11),  # R_X86_64_64, _32, _32S
    "aarch64": (257, 258, 260, 261),  # R_AARCH64_ABS64, _ABS32, _PREL64, _PREL32
}
_PC_RELATIVE = (2, 4, 13, 15, 24)  # R_X86_64_PC32, _PLT32, _PC16, _PC8, _PC64
_SYMBOL = np.dtype(
    [("skip", "<u4"), ("info", "<u2"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_NOT_READ = (".plt", ".rela.plt", ".got.plt", ".eh_frame", ".gcc_except_table")


@dataclass(frozen=True, slots=True)
class CodeReferences:
    """References to places that may be code; columns ascending, without repeats."""

    present: bool
    """Whether the linker kept its relocations against code."""
    labels: U64
    """Addresses that data or code holds."""
    by_data: U64
    """Those of them that the linker's relocations say data holds."""
    distances: U64
    """Addresses in data where a distance to code is kept."""


def read_references(image: Image) -> CodeReferences:
    """What the relocation tables of a file refer to."""
    dynamic = dynamic_relocations(image)
    stored = relative_targets(image, dynamic)
    rows = _symbol_rows(image)
    none = np.zeros(0, np.uint64)
    if image.section(".rela.text") is None or rows is None:
        return CodeReferences(False, np.unique(stored), none, none)
    by_code, by_data, distances = [none], [none], [none]
    for section, target in _kept_tables(image):
        rela = read_rela(image, section)
        rela = rela[~np.isin(rela["offset"], dynamic["offset"])]
        values, to_code = _values(image, rows, rela)
        absolute = values[to_code & np.isin(rela["type"], _ABSOLUTE[image.machine])]
        (by_code if target.is_code else by_data).append(absolute)
        if not target.is_code and image.machine == "x86-64":
            distances.append(rela["offset"][to_code & np.isin(rela["type"], _PC_RELATIVE)])
    return CodeReferences(
        True,
        distinct(np.concatenate([stored, *by_code, *by_data])),
        distinct(np.concatenate(by_data)),
        distinct(np.concatenate(distances)),
    )


def _kept_tables(image: Image) -> list[tuple[Section, Section]]:
    """Sections with the linker's relocations, and the section that each is about."""
    tables = [s for s in image.sections if s.type == SHT_RELA and not s.is_alloc]
    pairs = [(table, image.section(table.name.removeprefix(".rela"))) for table in tables]
    return [
        (table, target)
        for table, target in pairs
        if target is not None and target.is_alloc and target.name not in _NOT_READ
    ]


def _values(image: Image, rows: RelaRows, rela: RelaRows) -> tuple[U64, Bools]:
    """What each relocation stands for, and whether its symbol is in code."""
    is_code = np.array([*(s.is_code for s in image.sections), False], np.bool_)
    known = np.minimum(rela["symbol"], max(0, len(rows) - 1))
    symbol = rows[known]
    to_code = is_code[np.minimum(symbol["section"], len(is_code) - 1)]
    values = symbol["value"] + rela["addend"].astype(np.uint64)
    return values, to_code & (known == rela["symbol"])


def _symbol_rows(image: Image) -> RelaRows | None:
    """`.symtab` as it is in the file, since relocations name a symbol by its place there."""
    table = next((s for s in image.sections if s.type == SHT_SYMTAB), None)
    view = None if table is None else image.contents(table)
    if view is None or len(view) < _SYMBOL.itemsize:
        return None
    return np.frombuffer(view, _SYMBOL, count=len(view) // _SYMBOL.itemsize)
