"""The symbols of code in the order that BOLT goes by, under the names that BOLT gives them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.elf.plt import PLT_ENTRY_SIZES
from lbr2pgo.program.elf.symbols import STB_LOCAL, STT_NOTYPE, STT_SECTION, Symbols
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I32, I64, U64, Bools
from lbr2pgo.support.tables import Tabular, table

_HOT_MARKERS = (b"__hot_start\0", b"__hot_end\0")
_LABEL = b".L"


@table
class CodeSymbols(Tabular):
    """Symbols that stand in code, and absolute ones, in BOLT's order; columns of length n."""

    address: ImageAddresses
    size: U64
    section: I32
    """Index into `Image.sections`, -1 for an absolute one."""
    is_function: Bools
    is_global: Bools
    is_untyped: Bools
    names: Names
    """As in the symbol table, but for `renamed`."""
    renamed: Mapping[int, bytes]
    """By row, what BOLT calls a symbol otherwise."""
    number: I64
    """Appended to a local symbol's name; 0 for others."""
    file: Names
    """Source file of a local symbol, "" if unknown."""

    def bolt_name(self, row: int) -> str:
        """The name in fdata."""
        name = self.renamed.get(row) or self.names.raw(row)
        number = int(self.number[row])
        return name.decode("utf-8", "surrogateescape") + (f"/{number}" if number else "")

    @cached_property
    def file_names(self) -> dict[int, str]:
        """By row, the other name of a local function whose source file is known (NameResolver.h).

        It is the how manieth of its name in files of that name.
        """
        found: dict[int, str] = {}
        seen: defaultdict[bytes, int] = defaultdict(int)
        rows = np.flatnonzero(self.is_function & ~self.is_global & (self.file.offset >= 0))
        pairs = zip(self.names.take(rows).all_raw(), self.file.take(rows).all_raw(), strict=True)
        for row, (name, file) in zip(rows.tolist(), pairs, strict=True):
            called = (self.renamed.get(row) or name) + b"/" + file
            seen[called] += 1
            if file:
                found[row] = f"{os.fsdecode(called)}/{seen[called]}"
        return found


def code_symbols(image: Image, symbols: Symbols) -> CodeSymbols:
    """Symbols by address; at one address functions come first, section symbols last.

    A local symbol's name gets a number, counted by address over all local symbols of that name,
    data too (BOLT: NameResolver.h). Left out is what BOLT leaves out: symbols at address 0,
    outside their own section or in one that is not loaded (BOLT: discoverFileObjects). Dynamic
    symbols count for nothing.
    """
    rows = _in_bolt_order(image, symbols) if symbols.are_complete else np.empty(0, np.int64)
    names = symbols.names.take(rows)
    section, is_local = symbols.section[rows], symbols.binding[rows] == STB_LOCAL
    renamed, anonymous = _renamed(image, names, section, symbols.kind[rows] == STT_SECTION)
    number = _numbers(names, renamed, np.flatnonzero(is_local & ~anonymous))
    is_code = np.array([*(s.is_code for s in image.sections), True], np.bool_)[section]
    kept = np.flatnonzero(is_code)
    new_row = np.cumsum(is_code) - 1
    rows, is_local = rows[kept], is_local[kept]
    return CodeSymbols(
        address=symbols.start[rows],
        size=symbols.size[rows],
        section=section[kept],
        is_function=symbols.is_function[rows],
        is_global=~is_local,
        is_untyped=symbols.kind[rows] == STT_NOTYPE,
        names=names.take(kept),
        renamed={int(new_row[row]): name for row, name in renamed.items() if is_code[row]},
        number=number[kept],
        file=symbols.file.take(np.where(is_local, rows, -1)),
    )


def _in_bolt_order(image: Image, symbols: Symbols) -> I64:
    """Rows of the symbols in memory that BOLT looks at."""
    sections = image.sections
    allocated = np.array([s.is_alloc for s in sections], np.bool_)[symbols.section]
    start = np.array([s.address for s in sections], np.uint64)[symbols.section]
    size = np.array([s.size for s in sections], np.uint64)[symbols.section]
    is_plt = np.array([s.name in PLT_ENTRY_SIZES for s in sections], np.bool_)[symbols.section]
    skip = symbols.start - start
    fits = (symbols.start >= start) & (skip <= size) & (symbols.size <= size - skip)
    is_section = symbols.kind == STT_SECTION
    kept = (symbols.start > 0) & (
        (symbols.section < 0) | (allocated & fits & ~(is_section & is_plt))
    )
    for marker in (*_HOT_MARKERS, *image.architecture.mapping_symbols):
        kept &= ~symbols.names.start_with(marker)
    rows = np.flatnonzero(kept)
    rank = np.where(symbols.is_function, 0, np.where(is_section, 2, 1))[rows]
    return rows[np.lexsort((rank, symbols.start[rows]))]


def _renamed(
    image: Image, names: Names, section: I32, is_section: Bools
) -> tuple[dict[int, bytes], Bools]:
    """Names by row that BOLT gives itself, and which rows (n,) have none even so.

    A section's symbol is called like the section, and what LLVM would take for a label is not
    left looking so.
    """
    is_empty = (names.offset < 0) | names.start_with(b"\0")
    is_named = is_empty & is_section & (section >= 0)
    renamed = {
        row: image.sections[section[row]].name.encode() for row in np.flatnonzero(is_named).tolist()
    }
    for row in np.flatnonzero(names.start_with(_LABEL)).tolist():
        renamed[row] = b"PG" + names.raw(row)
    anonymous = is_empty & ~is_named
    for count, row in enumerate(np.flatnonzero(anonymous).tolist()):
        renamed[row] = b"ANONYMOUS.%d" % count
    return renamed, anonymous


def _numbers(names: Names, renamed: Mapping[int, bytes], local: I64) -> I64:
    """(n,): the how manieth of its name each of the local rows is; 0 for other rows."""
    number = np.zeros(len(names), np.int64)
    seen: defaultdict[bytes, int] = defaultdict(int)
    for row, name in zip(local.tolist(), names.take(local).all_raw(), strict=True):
        called = renamed.get(row, name)
        seen[called] += 1
        number[row] = seen[called]
    return number
