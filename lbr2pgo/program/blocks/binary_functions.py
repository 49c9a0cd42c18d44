"""Functions as BOLT sees them: their borders, and the names that fdata uses.

BOLT's idea of a function differs from the symbol table's: local names get a number, symbols
inside a function become secondary entries, functions are found without a symbol, and each one
reaches up to the next. A profile names functions and offsets, so both must be BOLT's
(BOLT: RewriteInstance.cpp, discoverFileObjects and adjustFunctionBoundaries).
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from lbr2pgo.program.blocks._function_borders import (
    NEW_FUNCTION,
    SAME_FUNCTION,
    SECONDARY_ENTRY,
    function_limits,
    symbol_roles,
)
from lbr2pgo.program.blocks.code_symbols import CodeSymbols, code_symbols
from lbr2pgo.program.elf.eh_frame import FrameDescriptions, read_frames
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.plt import plt_entries
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.support.addresses import (
    ByteRanges,
    ImageAddresses,
    PlacedAddresses,
    image_addresses,
    image_array,
)
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, distinct, place_of
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import Tabular, ascending, same_length, seal, stacked, taken

_FRAGMENT = re.compile(rb"(.*)\.(cold|warm)(\.\d+)?$", re.DOTALL)
_FRAGMENT_PARTS = (b".cold", b".warm")


@dataclass(frozen=True)
class BinaryFunctions(Tabular):
    """Functions of one image, by start address; all columns have length n."""

    start: ImageAddresses
    size: U64
    """Bytes that hold instructions."""
    max_size: U64
    """Bytes up to the next function, symbol or end of the section: padding is the function's."""
    is_pseudo: Bools
    """Entries of the procedure linkage table: BOLT never disassembles them."""
    is_contradicted: Bools
    """The symbol table and the unwinder, or the next symbol, say otherwise where it lies."""
    parent: I64
    """The function that a fragment was split off from, itself for all others."""
    secondary_entries: ImageAddresses
    """Addresses inside functions that a symbol marks as further entries, ascending."""
    frames: FrameDescriptions = field(repr=False)
    symbols: CodeSymbols = field(repr=False)
    symbol: I64 = field(repr=False)
    """Row of the symbol that names each, -1 where none does."""
    plt_name: Mapping[int, str] = field(repr=False)
    """By start, for entries of the procedure linkage table."""

    def __post_init__(self) -> None:
        seal(self)
        columns = "start", "size", "max_size", "is_pseudo", "is_contradicted", "parent", "symbol"
        same_length(self, *columns)
        ascending(self, "start")
        ascending(self, "secondary_entries")

    @cached_property
    def end(self) -> ImageAddresses:
        """First address behind each function's instructions."""
        return image_addresses(self.start + self.size)

    @property
    def ranges(self) -> ByteRanges:
        """The instructions of each."""
        return ByteRanges(self.start, self.end)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all."""
        return tuple(map(self.name, range(len(self))))

    def name(self, function: int) -> str:
        """What fdata calls a function."""
        symbol, start = int(self.symbol[function]), int(self.start[function])
        if symbol >= 0:
            return self.symbols.bolt_name(symbol)
        return self.plt_name.get(start, f"__BOLT_FDE_FUNCat{start:x}")

    @cached_property
    def names_with_files(self) -> tuple[str, ...]:
        """As `names`, but a local function's is the one that its source file stands in.

        So fdata of a program that BOLT made calls it (BOLT: DataAggregator.cpp, getLocationName).
        """
        names = list(self.names)
        at = place_of(self.symbols.address, self.start)
        for row, name in reversed(self.symbols.file_names.items()):
            if at[row] >= 0:
                names[at[row]] = name
        return tuple(names)

    def numbers_of(self, names: Sequence[str], *, bolted: bool) -> I64:
        """(n,): number of the function that fdata calls so, -1 for none.

        `bolted`: in fdata of a program that BOLT made.
        """
        number = {name: i for i, name in enumerate(self.names_with_files if bolted else self.names)}
        return np.array([number.get(name, -1) for name in names], np.int64)

    def starts_of(self, names: Sequence[str], *, bolted: bool) -> I64:
        """(n + 1,): where each of `numbers_of` begins, -1 for none and in the last row.

        So row -1, which a place without a name has, is told as unknown too.
        """
        starts = np.append(self.start.astype(np.int64), -1)
        return np.append(starts[self.numbers_of(names, bolted=bolted)], -1)

    @cached_property
    def has_line_break(self) -> Bools:
        """Whether the name of each holds one, which fdata can't."""
        others = [*self.plt_name.values(), *map(os.fsdecode, self.symbols.renamed.values())]
        if b"\n" not in self.symbols.names.table and not any("\n" in name for name in others):
            return np.zeros(len(self), np.bool_)  # names of all are many
        return np.array(["\n" in name for name in self.names], np.bool_)

    def containing(self, addresses: PlacedAddresses) -> I64:
        """(m,): index of the function that reaches over each address, -1 where there is none."""
        return interval_of(self.start, self.start + self.max_size, addresses)


def discover(image: Image, symbols: Symbols) -> BinaryFunctions:
    """The functions of an image; those without a symbol are found through `.eh_frame`."""
    frames, known = read_frames(image), code_symbols(image, symbols)
    sections = _bounds(image)
    named, roles = _of_symbols(known, frames, sections)
    plt, plt_name = _of_plt(image, known, named)
    found = _Found.merged([named, plt])
    found = _Found.merged([found, _of_frames(image, frames, found)])
    kept = roles != SECONDARY_ENTRY
    is_label = _is_label(known)
    limit, is_entry = function_limits(
        found.start,
        found.size,
        found.section,
        known.address[kept],
        known.size[kept],
        is_label[kept].view(np.uint8),
    )
    max_size = limit - found.start
    is_contradicted = found.is_contradicted | (max_size < found.size)
    entries = [known.address[~kept], known.address[kept][is_entry]]
    return BinaryFunctions(
        start=found.start,
        size=np.where((found.size == 0) & ~is_contradicted, max_size, found.size),
        max_size=np.maximum(max_size, found.size),
        is_pseudo=among(found.start, np.array(sorted(plt_name), np.uint64)),
        is_contradicted=is_contradicted,
        parent=_parents(known, roles, found),
        secondary_entries=distinct(np.concatenate(entries)),
        frames=frames,
        symbols=known,
        symbol=found.symbol,
        plt_name=plt_name,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Functions before their borders are set, by start; columns of length n."""

    start: ImageAddresses
    size: U64
    section: U64
    """(n, 2): start and end of the section that holds each."""
    symbol: I64
    is_contradicted: Bools

    @classmethod
    def without_symbol(cls, start: ImageAddresses, size: U64, section: U64) -> _Found:
        """Functions that no symbol names."""
        return cls(start, size, section, np.full(len(start), -1), np.zeros(len(start), np.bool_))

    @staticmethod
    def merged(parts: Sequence[_Found]) -> _Found:
        """All of them; of several at one start the first."""
        found = stacked(parts)
        _, first = np.unique(found.start, return_index=True)
        return taken(found, first)


def _bounds(image: Image) -> U64:
    """(s, 2): start and end of each section."""
    bounds = [(s.address, s.end) for s in image.sections]
    return np.array(bounds, np.uint64).reshape(-1, 2)


def _is_label(symbols: CodeSymbols) -> Bools:
    return symbols.is_untyped & ~symbols.is_global


def _of_symbols(
    symbols: CodeSymbols, frames: FrameDescriptions, sections: U64
) -> tuple[_Found, U8]:
    """The functions that symbols name, and what each symbol is to them."""
    size, is_contradicted = _checked_sizes(symbols, frames)
    room = sections[symbols.section, 1] - symbols.address if len(symbols) else size
    body_size = np.minimum(size, room)
    roles = symbol_roles(
        symbols.address,
        symbols.size,
        body_size,
        symbols.section,
        symbols.is_function.view(np.uint8),
        _is_label(symbols).view(np.uint8),
        sections,
    )
    at_start = np.flatnonzero((roles == NEW_FUNCTION) | (roles == SAME_FUNCTION))
    first = np.flatnonzero(roles[at_start] == NEW_FUNCTION)
    row = at_start[first]
    size = np.maximum.reduceat(body_size[at_start], first) if len(first) else body_size[:0]
    section = sections[symbols.section[row]]
    return _Found(symbols.address[row], size, section, row, is_contradicted[row]), roles


def _checked_sizes(symbols: CodeSymbols, frames: FrameDescriptions) -> tuple[U64, Bools]:
    """Size of a function at each symbol, and whether an unwind entry contradicts its start."""
    if not len(frames.start):
        return symbols.size, np.zeros(len(symbols), np.bool_)
    at = np.searchsorted(frames.start, symbols.address)
    here = np.minimum(at, len(frames.start) - 1)
    agrees = frames.start[here] == symbols.address
    size = np.where(agrees, np.maximum(symbols.size, frames.size[here]), symbols.size)
    between = ~agrees & (at > 0) & (at < len(frames.start))
    before = np.maximum(at - 1, 0)
    inside = symbols.address - frames.start[before] < frames.size[before]
    return size, between & inside


def _of_plt(image: Image, symbols: CodeSymbols, named: _Found) -> tuple[_Found, dict[int, str]]:
    """Entries of the procedure linkage table and the code in front of them, and their names."""
    entries = list(plt_entries(image))
    name_at = _plt_names(symbols, named, [symbol for *_, symbol in entries])
    names: dict[int, str] = {}
    bounds: list[tuple[int, int]] = []
    for section, address, symbol in entries:
        name = name_at.get(symbol) if symbol is not None else f"__BOLT_PSEUDO_{section.name}"
        if name is not None and address not in names:
            names[address] = name
            bounds.append((section.address, section.end))
    start = image_array(names)
    section_bounds = np.array(bounds, np.uint64).reshape(-1, 2)
    return _Found.without_symbol(start, np.zeros_like(start), section_bounds), names


def _plt_names(
    symbols: CodeSymbols, named: _Found, wanted: Iterable[str | int | None]
) -> dict[str | int, str]:
    """By what an entry stands for: a symbol, or the address of the function that chooses one.

    Named is the first symbol of what it jumps to, if that is in the image.
    """
    texts = {
        name: name.encode("utf-8", "surrogateescape") for name in wanted if isinstance(name, str)
    }
    addresses: dict[str | int, int] = {at: at for at in wanted if isinstance(at, int)}
    rows = symbols.names.rows_of(set(texts.values()))
    for name, text in texts.items():
        shared = [row for row in rows.get(text, ()) if symbols.is_global[row]]
        if shared:
            addresses[name] = int(symbols.address[shared[-1]])
    names: dict[str | int, str] = {name: f"{name}@PLT" for name in texts}
    for key, address in addresses.items():
        row = bisect_left(named.start, address)
        if row < len(named.start) and named.start[row] == address:
            names[key] = f"{symbols.bolt_name(int(named.symbol[row]))}@PLT"
    return names


def _of_frames(image: Image, frames: FrameDescriptions, known: _Found) -> _Found:
    """Functions that only the unwinder knows."""
    sections = np.array(
        sorted((s.address, s.end) for s in image.sections if s.is_code), np.uint64
    ).reshape(-1, 2)
    section = interval_of(sections[:, 0], sections[:, 1], frames.start)
    function = interval_of(known.start, known.start + known.size, frames.start)
    rows = np.flatnonzero((section >= 0) & (function < 0))
    start, bounds = frames.start[rows], sections[section[rows]]
    size = np.minimum(frames.size[rows], bounds[:, 1] - start)
    return _Found.without_symbol(start, size, bounds)


def _parents(symbols: CodeSymbols, roles: U8, found: _Found) -> I64:
    """The function that each fragment was split off from; itself for all others.

    Of several functions with the parent's name one from the same source file is taken, and of
    those the nearest. With one, as is usual, that is BOLT's choice too (BOLT: registerFragments).
    """
    at_start = np.flatnonzero((roles == NEW_FUNCTION) | (roles == SAME_FUNCTION))
    parent = np.arange(len(found.start))
    names = symbols.names.take(at_start)
    base = {
        row: match[1]
        for row in names.rows_holding(_FRAGMENT_PARTS).tolist()
        if (match := _FRAGMENT.match(names.raw(row)))
    }
    candidates = names.rows_of(set(base.values()))
    files = symbols.file.take(at_start)
    function = np.searchsorted(found.start, symbols.address[at_start])
    for row, name in base.items():
        rows = candidates.get(name, [])
        same_file = [other for other in rows if files.raw(other) == files.raw(row)]
        if rows:
            places = function[same_file or rows].tolist()
            starts = found.start[places].tolist()
            parent[function[row]] = places[_nearest(starts, int(found.start[function[row]]))]
    return parent


def _nearest(places: Sequence[int], place: int) -> int:
    """Index of the nearest of some places, which ascend."""
    after = bisect_left(places, place)
    candidates = [at for at in (after - 1, after) if 0 <= at < len(places)]
    return min(candidates, key=lambda at: abs(places[at] - place))
