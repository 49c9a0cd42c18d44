"""`JitProgram`: code that a process made, as a program like those in files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.dwarf.debug_info import CodeInfo, InlineFrames, Lines, Origin
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.program.jit.made_functions import JitFunction
from lbr2pgo.program.jit.made_image import JitImage
from lbr2pgo.program.jit.pieces import SeenBranches, cut_where_seen
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_array
from lbr2pgo.support.arrays import I32, I64, U32, U64
from lbr2pgo.support.intervals import interval_of, last_at_or_below

_FILE, _LINE = re.compile(r" (\S.*)", re.DOTALL), re.compile(r"(?::[0-9]+){1,2}\Z")
"""What a place in a function's name begins with, and ends with: a name may be long."""


def _path(file: bytes, function: bytes) -> str:
    r"""A file; some versions of V8 write memory that they gave back, but name it by the function.

    >>> _path(b"app.js", b"JS:*f /opt/app.js:1:15"), _path(b"\xff\xe4", b"JS:*f /opt/app.js:1:15")
    ('app.js', '/opt/app.js')
    >>> _path(b"\xff\xe4", b"f")
    '[unknown]'
    """
    try:
        text = file.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return text
    name = function.decode("utf-8", "replace")
    line = _LINE.search(name)
    place = line and _FILE.search(name[: line.start()])
    return place[1] if place else "[unknown]"


class _Table(NamedTuple):
    """Lines of one function, by offset in its code; columns of equal length."""

    offset: U64
    line: U32
    file: I32

    @classmethod
    def of(cls, function: JitFunction, numbers: dict[str, int]) -> Self:
        """Number the files."""
        named: dict[bytes, int] = {}
        for _, _, file in function.lines:
            if file not in named:
                named[file] = numbers.setdefault(_path(file, function.name), len(numbers))
        offset, line, number = zip(*((o, n, named[f]) for o, n, f in function.lines), strict=True)
        known = np.maximum(np.array(line, np.int64), 0)
        return cls(np.array(offset, np.uint64), known.astype(np.uint32), np.array(number, np.int32))


@dataclass(frozen=True, slots=True)
class JitLines:
    """Functions by their starts, each with a table of lines; many that moved may share one."""

    start: ImageAddresses
    end: ImageAddresses
    table: I32
    """Index into `tables`, -1 for a function without lines."""
    tables: tuple[_Table, ...]
    files: tuple[str, ...]

    @classmethod
    def of(cls, made: JitImage) -> Self:
        """Each line reaches to the next one, the last of a function to its end."""
        numbers: dict[str, int] = {}
        rows: dict[int, int] = {}
        tables: list[_Table] = []
        for function in made.functions:
            if function.lines and id(function.lines) not in rows:
                rows[id(function.lines)] = len(tables)
                tables.append(_Table.of(function, numbers))
        return cls(
            image_array(made.start),
            image_array([s + f.size for s, f in zip(made.start, made.functions, strict=True)]),
            np.array([rows.get(id(f.lines), -1) for f in made.functions], np.int32),
            tuple(tables),
            tuple(numbers),
        )

    @property
    def present(self) -> bool:
        """Whether the compiler told any."""
        return any((table.line > 0).any() for table in self.tables)

    @property
    def missing_reason(self) -> str:
        """Why there are none; empty if there are."""
        return "" if self.present else "the code's compiler told no lines"

    def health(self) -> Mapping[str, int]:
        """Nothing is wrong with them."""
        return {}

    def expect(self, addresses: PlacedAddresses) -> None:
        """Nothing: all is in memory."""

    def frames(self, addresses: PlacedAddresses) -> InlineFrames:
        """What was inlined is not told."""
        return InlineFrames.none(len(addresses))

    def lines(self, addresses: PlacedAddresses) -> Lines:
        """File and line of (n,) image addresses."""
        at = interval_of(self.start, self.end, addresses)
        offset = addresses - np.append(self.start, np.uint64(0))[at]
        number = np.where(at >= 0, np.append(self.table, -1)[at], -1)
        line = np.zeros(len(addresses), np.uint32)
        file = np.full(len(addresses), -1, np.int32)
        for each in np.unique(number[number >= 0]).tolist():
            rows, table = np.flatnonzero(number == each), self.tables[each]
            place = last_at_or_below(table.offset, offset[rows])
            line[rows] = np.where(place >= 0, table.line[place], 0)
            file[rows] = np.where(line[rows] > 0, table.file[place], -1)
        none = np.zeros(len(addresses), np.uint32)
        return Lines(file, line, none, none, self.files)

    def origins(self, addresses: PlacedAddresses) -> dict[str, Origin]:
        """Nothing is."""
        return {}


class JitProgram(Program):
    """The code of one process that no file shows."""

    def __init__(self, made: JitImage, seen: SeenBranches | None = None) -> None:
        """Take what was made and, for code without bytes, what was recorded of it."""
        super().__init__(made.image)
        self._made = made
        self._seen = seen or SeenBranches.nothing()

    def recorded(self, seen: SeenBranches) -> JitProgram:
        """The same, of which this is known."""
        return JitProgram(self._made, seen)

    def debug_info(self) -> CodeInfo:
        """Lines as the compiler told them."""
        return JitLines.of(self._made)

    @cached_property
    def symbols(self) -> Symbols:
        """The names of functions."""
        return self._made.symbols()

    def _decode_new(self, regions: I64) -> InstructionTable:
        if self._made.has_code:
            return super()._decode_new(regions)
        return cut_where_seen(self.regions.ranges.take(regions), self._seen)
