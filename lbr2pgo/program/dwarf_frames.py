"""Putting together what units said of addresses: one table of frames, with names and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.debug_info import I32, U32, Frames
from lbr2pgo.program.dwarf_container import I64, Container
from lbr2pgo.program.dwarf_functions import Functions, describe
from lbr2pgo.program.dwarf_lines import LineTable

TableOf = Callable[[int], LineTable | None]
"""The line table of a unit."""


class Group(NamedTuple):
    """Frames of those addresses that one unit covers."""

    rows: I64
    """(k,): which of the addresses."""
    unit: int
    container: Container
    lengths: I64
    """(k,): frames of each address."""
    dies: I64
    """Offset of each frame's DIE in the container, -1 if it has none; outermost first."""
    leaf: U32
    """(3, k): file number, line, discriminator."""


class _Columns:
    """Frames of all addresses, (m,) each; `die` is -1 in frames without a function.

    These are the big arrays, so they are no wider than they must be.
    """

    def __init__(self, groups: Sequence[Group], offsets: I64) -> None:
        m = int(offsets[-1])
        self.die = np.full(m, -1, np.int64)
        self.unit, self.container = np.zeros((2, m), np.int32)
        self.file, self.line, self.discriminator = np.zeros((3, m), np.uint32)
        self.is_leaf = np.zeros(m, np.bool_)
        self.is_leaf[offsets[1:][np.diff(offsets) > 0] - 1] = True
        # Containers hold arrays, which can't be compared.
        self.containers = {id(g.container): g.container for g in groups}
        numbers = {key: i for i, key in enumerate(self.containers)}
        for group in groups:
            self._scatter(group, offsets[group.rows], numbers[id(group.container)])

    def _scatter(self, group: Group, starts: I64, container: int) -> None:
        before = np.cumsum(group.lengths) - group.lengths
        places = np.repeat(starts - before, group.lengths) + np.arange(len(group.dies))
        self.unit[places] = group.unit
        self.die[places] = group.dies
        self.container[places] = container
        known = group.lengths > 0
        leaves = (starts + group.lengths - 1)[known]
        self.file[leaves], self.line[leaves], self.discriminator[leaves] = group.leaf[:, known]

    def described(self) -> tuple[I32, tuple[str, ...], U32]:
        """Name index of each frame, the names, and declaration lines; sets the outer lines."""
        names = Interned()
        name = np.full(len(self.die), names.index(""), np.int32)
        start_line = np.zeros(len(self.die), np.uint32)
        for i, container in enumerate(self.containers.values()):
            rows = np.flatnonzero((self.container == i) & (self.die >= 0))
            dies, back = np.unique(self.die[rows], return_inverse=True)
            functions = describe(container, dies)
            name[rows] = names.indices(functions.names)[back]
            start_line[rows] = functions.decl_line[back]
            self._set_calls(functions, rows, back)
        return name, names.texts, start_line

    def _set_calls(self, functions: Functions, rows: I64, back: I64) -> None:
        """Say where the frames outside of `rows` were left: at the call that was inlined there."""
        # The first row may be the outermost of all: nothing is outside of it.
        inlined = (rows > 0) & ~self.is_leaf[rows - 1]
        outer, back = rows[inlined] - 1, back[inlined]
        self.file[outer] = functions.call_file[back]
        self.line[outer] = functions.call_line[back]
        self.discriminator[outer] = functions.discriminator[back]


class Interned:
    """Texts, each once, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def index(self, text: str) -> int:
        """Number of a text."""
        return self._known.setdefault(text, len(self._known))

    def indices(self, texts: Iterable[str]) -> I32:
        """Number of each text."""
        return np.array([self.index(text) for text in texts], np.int32)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts by their numbers."""
        return tuple(self._known)


def assemble(groups: Sequence[Group], count: int, table_of: TableOf) -> Frames:
    """The frames of `count` addresses, of which each group holds some."""
    offsets = np.zeros(count + 1, np.int64)
    for group in groups:
        offsets[group.rows + 1] = group.lengths
    np.cumsum(offsets, out=offsets)
    columns = _Columns(groups, offsets)
    function, names, start_line = columns.described()
    file, files = name_files(columns.unit, columns.file, table_of)
    return Frames(
        offsets=offsets,
        function=function,
        line=columns.line,
        start_line=start_line,
        discriminator=columns.discriminator,
        file=file,
        names=names,
        files=files,
    )


def name_files(units: I32, numbers: U32, table_of: TableOf) -> tuple[I32, tuple[str, ...]]:
    """Index of each (unit, file number)'s path, and the paths."""
    keys, back = np.unique((units.astype(np.int64) << 32) | numbers, return_inverse=True)
    paths = Interned()
    indices = paths.indices(_path(table_of(key >> 32), key & 0xFFFFFFFF) for key in keys.tolist())
    return indices[back].astype(np.int32), paths.texts


def _path(table: LineTable | None, number: int) -> str:
    return "" if table is None else table.file_name(number)
