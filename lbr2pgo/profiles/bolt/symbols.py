"""The symbols of code in the order that BOLT goes by, under the names that BOLT gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.plt import PLT_ENTRY_SIZES
from lbr2pgo.program.elf.symbols import (
    STB_LOCAL,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_SECTION,
    Symbols,
)
from lbr2pgo.support.arrays import I64

_HOT_MARKERS = ("__hot_start", "__hot_end")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol that stands in code, or an absolute one."""

    address: int
    size: int
    name: str
    """As in the symbol table."""
    bolt_name: str
    """As in fdata."""
    section: Section | None
    """None for an absolute one."""
    is_function: bool
    is_untyped: bool
    is_global: bool
    file: str
    """Source file of a local symbol, "" if unknown."""


def bolt_symbols(image: Image, symbols: Symbols) -> Iterator[Symbol]:
    """Symbols by address; at one address functions come first, section symbols last.

    A local symbol's name gets a number, counted by address over all local symbols of that name,
    data too (BOLT: NameResolver.h). Left out is what BOLT leaves out: symbols at address 0,
    outside their own section or in one that is not loaded (BOLT: discoverFileObjects).
    """
    numbers: Counter[str] = Counter()
    rows = _in_bolt_order(image, symbols)
    columns = (symbols.start, symbols.size, symbols.section, symbols.kind, symbols.binding)
    for row, start, size, number, kind, binding in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        section = None if number < 0 else image.sections[number]
        name = symbols.names.raw(row).decode("utf-8", "surrogateescape")
        if kind == STT_SECTION and section is not None:
            if section.name in PLT_ENTRY_SIZES:
                continue
            name = name or section.name
        if name in _HOT_MARKERS:
            continue
        is_global = binding != STB_LOCAL
        bolt_name = _bolt_name(name, is_global, numbers)
        if section is None or section.is_code:
            yield Symbol(
                address=start,
                size=size,
                name=name,
                bolt_name=bolt_name,
                section=section,
                is_function=kind in (STT_FUNC, STT_GNU_IFUNC),
                is_untyped=kind == STT_NOTYPE,
                is_global=is_global,
                file="" if is_global else symbols.file[row],
            )


def _bolt_name(name: str, is_global: bool, numbers: Counter[str]) -> str:
    if not name:
        numbers[""] += 1
        return f"ANONYMOUS.{numbers[''] - 1}"
    if name.startswith(".L"):  # LLVM would take it for a label
        name = f"PG{name}"
    if is_global:
        return name
    numbers[name] += 1
    return f"{name}/{numbers[name]}"


def _in_bolt_order(image: Image, symbols: Symbols) -> I64:
    """Rows of the symbols in memory."""
    sections = image.sections
    allocated = np.array([s.is_alloc for s in sections], np.bool_)[symbols.section]
    start = np.array([s.address for s in sections], np.uint64)[symbols.section]
    size = np.array([s.size for s in sections], np.uint64)[symbols.section]
    skip = symbols.start - start
    fits = (symbols.start >= start) & (skip <= size) & (symbols.size <= size - skip)
    kept = np.flatnonzero((symbols.start > 0) & ((symbols.section < 0) | (allocated & fits)))
    if image.machine == "aarch64":
        kept = kept[[not _is_marker(symbols, row) for row in kept.tolist()]]
    rank = np.where(symbols.is_function, 0, np.where(symbols.kind == STT_SECTION, 2, 1))
    return kept[np.lexsort((rank[kept], symbols.start[kept]))]


def _is_marker(symbols: Symbols, row: int) -> bool:
    """Whether a symbol only says that code or data follows (AAELF64, "Mapping symbols")."""
    return symbols.names.raw(row)[:3] in (b"$x", b"$x.", b"$d", b"$d.")
