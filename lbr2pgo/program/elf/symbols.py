"""The symbols of an image, as arrays; a million of them cost little."""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.elf.headers import SHT_DYNSYM, SHT_SYMTAB, Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.names import Names, offsets_inside, refuse_overlaps
from lbr2pgo.support.addresses import (
    ByteRanges,
    ImageAddresses,
    PlacedAddresses,
    image_addresses,
)
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, table

# System V gABI, "Symbol Table"
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_TLS = 0, 1, 2, 3, 4, 6
STT_GNU_IFUNC = 10
_SHN_UNDEF, _SHN_RESERVED, _SHN_ABS, _SHN_COMMON, _SHN_XINDEX = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF
_SHT_SYMTAB_SHNDX = 18

_ROW = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"),
     ("value", "<u8"), ("size", "<u8")]
)  # fmt: skip

_COMPLETE = ".symtab"

_MINI_DEBUG_INFO_LIMIT = 1 << 28
"""Bytes that a .gnu_debugdata may unpack to; real ones stay below a few million."""


@table
class Symbols(Tabular):
    """Defined symbols, ordered by start and then as in the table; arrays of n rows.

    Left out: undefined and common symbols, thread-local ones (theirs are no addresses) and
    STT_FILE, which `file` shows instead.
    """

    start: ImageAddresses
    size: U64
    names: Names
    binding: U8
    """STB_*"""
    kind: U8
    """STT_*"""
    section: I32
    """Index into `Image.sections`; -1 for an absolute symbol."""
    file: Names
    """Source file that a local symbol came from, "" where the table does not say."""
    origin: str
    """Where the symbols were found."""
    health: Mapping[str, int] = field(default_factory=dict)
    """What the table got wrong: a reason in words, and how many."""

    @property
    def are_complete(self) -> bool:
        """Whether this is a whole symbol table, and not what stripping leaves of it."""
        return self.origin == _COMPLETE

    def with_functions(self, found: ByteRanges, names: Sequence[str]) -> Symbols:
        """These, and a local symbol for each function (k,) at which none stands."""
        rows = np.flatnonzero(~np.isin(found.start, self.start[self.is_function]))
        start = image_addresses(np.concatenate([self.start, found.start[rows]]))
        size = np.concatenate([self.size, found.end[rows] - found.start[rows]])
        order = np.argsort(start, kind="stable")

        def with_all(own: npt.NDArray[Any], value: int) -> npt.NDArray[Any]:
            return np.concatenate([own, np.full(len(rows), value, own.dtype)])[order]

        return replace(
            self,
            start=start[order],
            size=size[order],
            names=Names.joined([self.names, Names.of([names[row] for row in rows.tolist()])]).take(
                order
            ),
            binding=with_all(self.binding, STB_LOCAL),
            kind=with_all(self.kind, STT_FUNC),
            section=with_all(self.section, -1),
            file=Names(self.file.table, with_all(self.file.offset, -1)),
        )

    @cached_property
    def end(self) -> ImageAddresses:
        """First address behind each symbol, at most the last address there is."""
        room = np.uint64(0xFFFFFFFFFFFFFFFF) - self.start
        return image_addresses(self.start + np.minimum(self.size, room))

    @cached_property
    def is_function(self) -> Bools:
        """Whether the symbol says it is one."""
        is_function: Bools = np.isin(self.kind, (STT_FUNC, STT_GNU_IFUNC))
        return is_function

    @cached_property
    def preference(self) -> I64:
        """The lower, the better a symbol names what several symbols name."""
        ranks = np.full(256, 2)
        ranks[[STB_GLOBAL, STB_GNU_UNIQUE, STB_WEAK]] = 0, 0, 1
        rank: I64 = ranks[self.binding]
        return rank

    def covering(self, addresses: PlacedAddresses) -> I64:
        """For each address the function symbol that spans it, -1 where none does.

        Of several the one that starts last, if it reaches that far; otherwise the one that
        reaches farthest.
        """
        rows, farthest = self._spans
        if not len(rows):
            return np.full(len(addresses), -1)
        at = last_at_or_below(self.start[rows], addresses)
        nearest, widest = rows[at], rows[farthest[at]]
        found = np.where(addresses < self.end[nearest], nearest, widest)
        return np.where((at >= 0) & (addresses < self.end[found]), found, -1)

    def by_name(self, name: str) -> int | None:
        """Row of a name; global before weak before local, then the lowest address."""
        return self._index.get(name)

    def function_at(self, addresses: Iterable[int]) -> dict[int, str]:
        """The best name of those addresses at which a function symbol stands."""
        return {address: names[0] for address, names in self.functions_at(addresses).items()}

    def functions_at(self, addresses: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """All names of those addresses at which a function symbol stands, the best first."""
        wanted = np.array(list(addresses), np.uint64)
        rows = np.flatnonzero(self.is_function)
        rows = rows[np.lexsort((rows, self.preference[rows], self.start[rows]))]
        starts = self.start[rows]
        first, past = (np.searchsorted(starts, wanted, side) for side in ("left", "right"))
        return {
            address: tuple(self.names[row] for row in rows[i:j].tolist())
            for address, i, j in zip(wanted.tolist(), first.tolist(), past.tolist(), strict=True)
            if i < j
        }

    @cached_property
    def _spans(self) -> tuple[I64, I64]:
        """Sized functions with the best of equal starts last; which so far reaches farthest."""
        rows = np.flatnonzero(self.is_function & (self.size > 0))
        rows = rows[np.lexsort((-rows, -self.preference[rows], self.start[rows]))]
        end = self.end[rows]
        is_record = np.ones(len(rows), dtype=bool)
        is_record[1:] = end[1:] >= np.maximum.accumulate(end)[:-1]
        return rows, np.maximum.accumulate(np.where(is_record, np.arange(len(rows)), 0))

    @cached_property
    def _index(self) -> dict[str, int]:
        rows = np.lexsort((-np.arange(len(self)), -self.preference))
        index = {self.names[row]: row for row in rows.tolist()}
        index.pop("", None)
        return index


def has_symbol_table(image: Image) -> bool:
    """Whether a file holds `.symtab`; in what was split off it may be a header alone."""
    return any(s.type == SHT_SYMTAB and image.holds(s) for s in image.sections)


def read_symbols(image: Image, holder: Image | None = None) -> Symbols:
    """Symbols of .symtab; without one, those of .dynsym and of .gnu_debugdata (MiniDebugInfo).

    `holder` is the file with the image's symbol table, if it is not the image itself. Raises
    InputError where the string table is laid out to exhaust memory.
    """
    main = _table(holder or image, SHT_SYMTAB)
    if main is not None and holder is not None and holder is not image:
        main = replace(main, section=_number_in(image, holder)[main.section])
    if main is not None:
        return _symbols((holder or image).path, {_COMPLETE: main}, {})
    tables = {".dynsym": _table(image, SHT_DYNSYM), ".gnu_debugdata": _mini_debug_info(image)}
    lost = image.section(".gnu_debugdata") is not None and tables[".gnu_debugdata"] is None
    found = {name: table for name, table in tables.items() if table is not None}
    return _symbols(image.path, found, {"symbol tables (.gnu_debugdata) that don't unpack": lost})


def thread_local_names(image: Image) -> tuple[str, ...]:
    """Names of thread-local variables, also of those that a shared library has; sorted.

    Raises InputError as `read_symbols`.
    """
    table = _table(image, SHT_SYMTAB) or _table(image, SHT_DYNSYM)
    if table is None:
        return ()
    is_variable = table.rows["info"] & 0xF == STT_TLS
    offset = offsets_inside(table.rows["name"].astype(np.int64), table.strings)[is_variable]
    return tuple(sorted(set(Names(table.strings, offset))))


def _number_in(image: Image, holder: Image) -> I32:
    """Number in the image of each section of the file with its symbols, then -1 for none."""
    numbers = {(s.name, s.address): number for number, s in enumerate(image.sections)}
    found = [numbers.get((s.name, s.address), -1) for s in holder.sections]
    return np.array([*found, -1], np.int32)


@dataclass(frozen=True, slots=True)
class _Table:
    """Symbols as one table of the file holds them."""

    rows: npt.NDArray[np.void]
    section: I32
    strings: bytes


def _table(image: Image, section_type: int) -> _Table | None:
    section = next((s for s in image.sections if s.type == section_type), None)
    if section is None:
        return None
    content = image.contents(section)
    if content is None:
        return None
    rows = np.frombuffer(content, _ROW, count=len(content) // _ROW.itemsize)
    return _Table(rows, _section_numbers(image, section, rows), image.strings(section.link))


def _section_numbers(image: Image, symbols: Section, rows: npt.NDArray[np.void]) -> I32:
    """Section of each symbol, -1 for those in none; escapes go through SHT_SYMTAB_SHNDX."""
    number = rows["section"].astype(np.int32)
    escaped = number == _SHN_XINDEX
    if escaped.any():
        extended = (s for s in image.sections if s.type == _SHT_SYMTAB_SHNDX)
        wide = next(
            (s for s in extended if image.sections[s.link : s.link + 1] == (symbols,)), None
        )
        words = np.frombuffer((wide and image.contents(wide)) or b"", "<u4")[: len(number)]
        known = escaped[: len(words)]
        number[: len(words)][known] = words[known].astype(np.int32)
    return np.where((number < len(image.sections)) & (number >= 0), number, -1).astype(np.int32)


def _mini_debug_info(image: Image) -> _Table | None:
    """The .symtab of the small ELF file that .gnu_debugdata holds, packed with xz."""
    packed = image.section_view(".gnu_debugdata")
    if packed is None:
        return None
    try:
        unpacked = lzma.LZMADecompressor(memlimit=_MINI_DEBUG_INFO_LIMIT).decompress(
            packed, max_length=_MINI_DEBUG_INFO_LIMIT
        )
        return _table(Image.parse(unpacked, f"{image.path} (.gnu_debugdata)"), SHT_SYMTAB)
    except (lzma.LZMAError, InputError):
        return None


def _symbols(path: str, named: Mapping[str, _Table], health: Mapping[str, int]) -> Symbols:
    tables = list(named.values())
    rows = _joined([table.rows for table in tables], _ROW)
    section = _joined([table.section for table in tables], np.dtype(np.int32))
    strings = b"\0".join(table.strings for table in tables)
    info: U8 = rows["info"]
    kind, binding = (info & 0xF).astype(np.uint8), (info >> 4).astype(np.uint8)
    offset, lost = _name_offsets(tables)
    refuse_overlaps(path, "symbols", strings, offset)
    kept = np.flatnonzero(_is_defined(rows, kind))
    kept = kept[np.argsort(rows["value"][kept], kind="stable")]
    return Symbols(
        start=rows["value"][kept],
        size=rows["size"][kept],
        names=Names(strings, offset[kept]),
        binding=binding[kept],
        kind=kind[kept],
        section=section[kept],
        file=Names(strings, _file_offsets(kind, binding, offset)[kept]),
        origin=" and ".join(named) or "nowhere",
        health={
            reason: int(count)
            for reason, count in {**health, "symbol names outside the string table": lost}.items()
            if count
        },
    )


def _joined(parts: list[npt.NDArray[Any]], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """All parts; the only one, as it usually is, without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def _is_defined(rows: npt.NDArray[np.void], kind: U8) -> Bools:
    number = rows["section"]
    is_reserved = (number >= _SHN_RESERVED) & ~np.isin(number, (_SHN_ABS, _SHN_XINDEX))
    defined: Bools = (number != _SHN_UNDEF) & ~is_reserved & ~np.isin(kind, (STT_FILE, STT_TLS))
    return defined


def _name_offsets(tables: list[_Table]) -> tuple[I64, int]:
    """Offsets in the joined string tables, -1 for those outside, and how many these are."""
    offsets, base = [np.empty(0, np.int64)], 0
    for each in tables:
        own = offsets_inside(each.rows["name"].astype(np.int64), each.strings)
        offsets.append(np.where(own < 0, own, own + base))
        base += len(each.strings) + 1
    joined = np.concatenate(offsets)
    return joined, int((joined < 0).sum())


def _file_offsets(kind: U8, binding: U8, name: I64) -> I64:
    """Name of the STT_FILE symbol before each local symbol, -1 where there is none."""
    is_file = kind == STT_FILE
    latest = np.maximum.accumulate(np.where(is_file, np.arange(len(kind)), -1))
    known = (latest >= 0) & (binding == STB_LOCAL)
    return np.where(known, name[latest], -1) if len(kind) else name
