"""What refers to places in functions from outside of them.

Relocations tell of addresses that data and code hold: an address of code kept in data is a label
(BOLT: RewriteInstance.cpp, handleRelocation). Where the linker kept its relocations too
(`--emit-relocs`), they also tell jump tables, which hold distances to code, from other data.

Of branches from other functions BOLT reads the whole program. Here a scan of the bytes for
anything that might be such a branch says which few functions are worth disassembling.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.program.blocks.idioms import Idioms
from lbr2pgo.program.elf.headers import SHT_SYMTAB, Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import (
    SHT_RELA,
    RelaRows,
    dynamic_relocations,
    read_rela,
    relative_targets,
)
from lbr2pgo.support.addresses import ImageAddresses, image_addresses, image_array
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, begins, distinct
from lbr2pgo.support.tables import ascending, seal

_SYMBOL = np.dtype(
    [("skip", "<u4"), ("info", "<u2"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_PIECE, _LONGEST_BRANCH = 1 << 20, 6
"""Bytes of code that are looked at together, and of a direct branch (x86: Jcc rel32)."""
_NOT_READ = (".plt", ".rela.plt", ".got.plt", ".eh_frame", ".gcc_except_table")


@dataclass(frozen=True, slots=True)
class CodeReferences:
    """References to places that may be code; columns ascending, without repeats."""

    present: bool
    """Whether the linker kept its relocations against code."""
    labels: ImageAddresses
    """Addresses that data or code holds."""
    by_data: ImageAddresses
    """Those of them that the linker's relocations say data holds."""
    distances: ImageAddresses
    """Addresses in data where a distance to code is kept."""

    def __post_init__(self) -> None:
        seal(self)
        for column in ("labels", "by_data", "distances"):
            ascending(self, column)


def read_references(image: Image) -> CodeReferences:
    """What the relocation tables of a file refer to."""
    types = image.architecture.relocations
    dynamic = dynamic_relocations(image)
    stored = relative_targets(image, dynamic)
    known = np.sort(dynamic["offset"])
    rows = _symbol_rows(image)
    none = image_array(())
    if image.section(".rela.text") is None or rows is None:
        return CodeReferences(False, distinct(stored), none, none)
    by_code, by_data, distances = [none], [none], [none]
    for section, target in _kept_tables(image):
        rela = read_rela(image, section)
        rela = rela[~among(rela["offset"], known)]
        values, to_code = _values(image, rows, rela)
        absolute = values[to_code & np.isin(rela["type"], types.references)]
        (by_code if target.is_code else by_data).append(absolute)
        if not target.is_code:
            distances.append(rela["offset"][to_code & np.isin(rela["type"], types.jump_tables)])
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


def _values(image: Image, rows: RelaRows, rela: RelaRows) -> tuple[ImageAddresses, Bools]:
    """What each relocation stands for, and whether its symbol is in code."""
    is_code = np.array([*(s.is_code for s in image.sections), False], np.bool_)
    known = np.minimum(rela["symbol"], max(0, len(rows) - 1))
    symbol = rows[known]
    to_code = is_code[np.minimum(symbol["section"], len(is_code) - 1)]
    values = image_addresses(symbol["value"] + rela["addend"].astype(np.uint64))
    return values, to_code & (known == rela["symbol"])


def _symbol_rows(image: Image) -> RelaRows | None:
    """`.symtab` as it is in the file, since relocations name a symbol by its place there."""
    table = next((s for s in image.sections if s.type == SHT_SYMTAB), None)
    view = None if table is None else image.contents(table)
    if view is None or len(view) < _SYMBOL.itemsize:
        return None
    return np.frombuffer(view, _SYMBOL, count=len(view) // _SYMBOL.itemsize)


def possible_callers(image: Image, code: Disassembly, idioms: Idioms) -> I64:
    """Functions outside of `code` whose bytes may hold a branch into the middle of one inside."""
    functions = code.functions
    inside = np.zeros(len(functions), np.bool_)
    inside[code.function] = True
    middles = code.address[code.address != functions.start[code.function]]
    pieces = _executable(image) if len(middles) else iter(())
    callers = distinct(functions.containing(idioms.branches_to(pieces, middles)))
    callers = callers[callers >= 0]
    return callers[~inside[callers] & ~functions.is_pseudo[callers]]


def _executable(image: Image) -> Iterator[tuple[U8, int]]:
    """Bytes of executable segments, piece by piece, and their addresses; pieces overlap a bit."""
    for segment in image.layout.segments:
        for skip in range(0, segment.file_size if segment.executable else 0, _PIECE):
            start = segment.address + skip
            yield np.frombuffer(image.stored(start, _PIECE + _LONGEST_BRANCH), np.uint8), start


def without_data(callers: Disassembly, code: Disassembly) -> Disassembly:
    """Callers without what can't be code.

    Each one counts up to the first bytes that are no instruction, as in BOLT; and not at all if
    it branches to a place in `code` where no instruction starts, which text and tables between
    functions seem to do.
    """
    functions = code.functions
    callers = _up_to_gaps(callers)
    hit = functions.containing(callers.target)
    inside = np.zeros(len(functions) + 1, np.bool_)  # the last one stands for no function
    inside[code.function] = True
    into = callers.has_target & inside[hit] & (callers.target < functions.end[hit])
    lies = into & (code.at(callers.target) < 0)
    is_data = np.zeros(len(functions), np.bool_)
    is_data[callers.function[lies]] = True
    return callers.take(~is_data[callers.function])


def _up_to_gaps(code: Disassembly) -> Disassembly:
    is_first = begins(code.function)
    gaps = np.cumsum(~code.continues() & ~is_first)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(code)), 0))
    return code.take(gaps == gaps[first])
