"""Functions as BOLT sees them: their borders, and the names that fdata uses.

BOLT's idea of a function differs from the symbol table's: local names get a number, symbols
inside a function become further entries, functions are found without a symbol, and each one
reaches up to the next. A profile names functions and offsets, so both must be BOLT's
(BOLT: RewriteInstance.cpp, discoverFileObjects and adjustFunctionBoundaries).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

import numpy as np

from lbr2pgo.profiles.bolt.symbols import Symbol, bolt_symbols
from lbr2pgo.program.elf.eh_frame import Frames, read_frames
from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.plt import plt_entries
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.support.arrays import I64, U64, Bools

_FRAGMENT = re.compile(r"(.*)\.(cold|warm)(\.\d+)?$", re.DOTALL)


@dataclass(frozen=True)
class BoltFunctions:
    """Functions of one image, by start address; all columns have length n."""

    start: U64
    size: U64
    """Bytes that hold instructions."""
    reach: U64
    """Bytes up to the next function, symbol or end of the section: padding is the function's."""
    name: tuple[str, ...]
    is_pseudo: Bools
    """Entries of the procedure linkage table: BOLT never disassembles them."""
    is_broken: Bools
    """Their borders contradict one another, so BOLT leaves them alone."""
    family: I64
    """Number that a split function shares with its fragments."""
    entries: U64
    """Addresses inside functions that a symbol marks as further entries, ascending."""
    frames: Frames = field(repr=False)

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def end(self) -> U64:
        """First address behind each function's instructions."""
        return self.start + self.size

    def containing(self, addresses: U64) -> I64:
        """(m,): index of the function that reaches over each address, -1 where there is none."""
        if not len(self):
            return np.full(len(addresses), -1, np.int64)
        at = np.searchsorted(self.start, addresses, side="right").astype(np.int64) - 1
        inside = (at >= 0) & (addresses - self.start[at] < self.reach[at])
        return np.where(inside, at, -1)


@dataclass(slots=True)
class _Function:
    """One function while the table is built."""

    start: int
    size: int
    name: str
    section: Section
    is_pseudo: bool = False
    is_broken: bool = False
    reach: int = 0
    symbols: list[Symbol] = field(default_factory=list)
    """Those that stand at its start."""

    def contains(self, address: int) -> bool:
        return self.start <= address < self.start + self.size

    def tolerates(self, symbol: Symbol) -> bool:
        """Whether a symbol may stand inside the body (BOLT: isSymbolValidInScope)."""
        if not self.section.address <= symbol.address < self.section.end:
            return False
        if symbol.size == 0 and self.contains(symbol.address):
            return True
        return symbol.is_untyped and not symbol.is_global


def discover(image: Image, symbols: Symbols) -> BoltFunctions:
    """The functions of an image; those without a symbol are found through `.eh_frame`.

    Dynamic symbols count for nothing, as in BOLT.
    """
    frames = read_frames(image)
    builder = _Builder(image, frames)
    if symbols.origin == ".symtab":
        for symbol in bolt_symbols(image, symbols):
            builder.add_symbol(symbol)
    builder.add_plt()
    builder.add_frames()
    return builder.finish()


class _Builder:
    """Adds symbols in BOLT's order, then what has no symbol, then sets the borders."""

    def __init__(self, image: Image, frames: Frames) -> None:
        self._image = image
        self._frames = frames
        self._frame_starts: list[int] = frames.start.tolist()
        self._frame_sizes: list[int] = frames.size.tolist()
        self._functions: dict[int, _Function] = {}
        self._symbols: list[Symbol] = []
        self._globals: dict[str, int] = {}
        self._entries: set[int] = set()
        self._previous: _Function | None = None

    def add_symbol(self, symbol: Symbol) -> None:
        """Take the next symbol, by address."""
        self._symbols.append(symbol)
        if symbol.is_global:
            self._globals[symbol.name] = symbol.address
        section = symbol.section
        if section is None or symbol.address == section.end:
            return
        if not self._is_inside_previous(symbol):
            self._previous = self._add_function(symbol, section)

    def _is_inside_previous(self, symbol: Symbol) -> bool:
        """Whether a symbol belongs to the body of the function before it."""
        previous = self._previous
        if previous is None:
            return False
        inside = previous.contains(symbol.address)
        if not symbol.is_function:
            return inside or (previous.size == 0 and previous.tolerates(symbol))
        if not inside or previous.start == symbol.address:
            return False
        if not previous.tolerates(symbol):
            self._entries.add(symbol.address)
            self._symbols.pop()
        return True

    def _add_function(self, symbol: Symbol, section: Section) -> _Function:
        size, is_broken = self._checked_size(symbol)
        size = min(size, section.end - symbol.address)
        function = self._functions.get(symbol.address)
        if function is None:
            function = _Function(
                symbol.address, size, symbol.bolt_name, section, is_broken=is_broken
            )
            self._functions[symbol.address] = function
        else:
            function.size = max(size, function.size)
        function.symbols.append(symbol)
        return function

    def _checked_size(self, symbol: Symbol) -> tuple[int, bool]:
        """Size of a function, and whether an unwind entry contradicts its start."""
        starts, sizes = self._frame_starts, self._frame_sizes
        at = bisect_left(starts, symbol.address)
        if at < len(starts) and starts[at] == symbol.address:
            return max(symbol.size, sizes[at]), False
        if at in (0, len(starts)):
            return symbol.size, False
        return symbol.size, symbol.address < starts[at - 1] + sizes[at - 1]

    def add_plt(self) -> None:
        """Entries of the procedure linkage table, and the code in front of them."""
        for section, address, symbol in plt_entries(self._image):
            name = self._plt_name(section, symbol)
            if name is None:
                continue
            function = self._functions.setdefault(address, _Function(address, 0, name, section))
            function.is_pseudo = True

    def _plt_name(self, section: Section, symbol: str | int | None) -> str | None:
        """Named is the first symbol of what the entry's symbol names, if that is in the image."""
        if symbol is None:
            return f"__BOLT_PSEUDO_{section.name}"
        address = symbol if isinstance(symbol, int) else self._globals.get(symbol, 0)
        function = self._functions.get(address)
        if function is not None:
            return f"{function.name}@PLT"
        return None if isinstance(symbol, int) else f"{symbol}@PLT"

    def add_frames(self) -> None:
        """Functions that only the unwinder knows."""
        starts = sorted(self._functions)
        ranges = zip(self._frame_starts, self._frame_sizes, strict=True)
        for start, size in ranges:
            at = bisect_right(starts, start) - 1
            section = self._code_section_at(start)
            if section is None or (at >= 0 and self._functions[starts[at]].contains(start)):
                continue
            name = f"__BOLT_FDE_FUNCat{start:x}"
            size = min(size, section.end - start)
            self._functions.setdefault(start, _Function(start, size, name, section))

    def _code_section_at(self, address: int) -> Section | None:
        sections = (s for s in self._image.sections if s.is_code)
        return next((s for s in sections if s.address <= address < s.end), None)

    def finish(self) -> BoltFunctions:
        """Set the borders, now that all functions are known."""
        functions = [self._functions[start] for start in sorted(self._functions)]
        addresses = [s.address for s in self._symbols]
        for function, after in zip_longest(functions, functions[1:]):
            _set_border(function, self._limit(function, after, addresses))
        return BoltFunctions(
            start=np.array([f.start for f in functions], np.uint64),
            size=np.array([f.size for f in functions], np.uint64),
            reach=np.array([f.reach for f in functions], np.uint64),
            name=tuple(f.name for f in functions),
            is_pseudo=np.array([f.is_pseudo for f in functions], np.bool_),
            is_broken=np.array([f.is_broken for f in functions], np.bool_),
            family=_families(functions),
            entries=np.array(sorted(self._entries), np.uint64),
            frames=self._frames,
        )

    def _limit(self, function: _Function, after: _Function | None, addresses: list[int]) -> int:
        """Where a function ends at the latest; symbols tolerated before it become entries."""
        limit = function.section.end if after is None else min(function.section.end, after.start)
        for at in range(bisect_right(addresses, function.start), len(addresses)):
            symbol = self._symbols[at]
            is_behind = after is not None and symbol.address >= after.start
            if is_behind or not function.tolerates(symbol):
                return min(limit, symbol.address)
            self._entries.add(symbol.address)
        return limit


def _set_border(function: _Function, limit: int) -> None:
    function.reach = limit - function.start
    if function.reach < function.size:
        function.is_broken = True
        function.reach = function.size
    elif function.size == 0 and not function.is_broken:
        function.size = function.reach


def _families(functions: Sequence[_Function]) -> I64:
    """Number functions so that fragments share their parent's number.

    Of several functions with the parent's name one from the same source file is taken, and of
    those the nearest. With one, as is usual, that is BOLT's choice too (BOLT: registerFragments).
    """
    named: dict[tuple[str, str | None], tuple[list[int], list[int]]] = {}
    for i, function in enumerate(functions):
        for symbol in function.symbols:
            for key in ((symbol.name, symbol.file), (symbol.name, None)):
                starts, numbers = named.setdefault(key, ([], []))
                starts.append(function.start)
                numbers.append(i)
    family = np.arange(len(functions))
    for i, function in enumerate(functions):
        for symbol in function.symbols:
            match = _FRAGMENT.match(symbol.name)
            parents = match and (named.get((match[1], symbol.file)) or named.get((match[1], None)))
            if parents:
                family[i] = parents[1][_nearest(parents[0], function.start)]
    return family


def _nearest(places: Sequence[int], place: int) -> int:
    """Index of the nearest of some places, which ascend."""
    after = bisect_left(places, place)
    candidates = [at for at in (after - 1, after) if 0 <= at < len(places)]
    return min(candidates, key=lambda at: abs(places[at] - place))
