"""Putting together what units said of addresses: one table of frames, with names and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.dwarf.container import Container
from lbr2pgo.program.dwarf.debug_info import Frames
from lbr2pgo.program.dwarf.functions import Functions, describe
from lbr2pgo.program.dwarf.lines import LineTable
from lbr2pgo.support.arrays import I32, I64, U32

_DIES_AT_ONCE = 1 << 16
"""About so many are described together: what they hold takes 120 bytes each meanwhile."""

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
    offsets: I64
    """(d,): where in the container the DIEs of these frames are."""
    die: I32
    """DIE of each frame, as an index into `offsets`, -1 if it has none; outermost first."""
    leaf: U32
    """(3, k): file number, line, discriminator."""


class _Columns:
    """Frames of all addresses, (m,) each; `die` is -1 in frames without a function.

    These are the big arrays, so they are no wider than they must be.
    """

    def __init__(self, groups: Sequence[Group], offsets: I64) -> None:
        m = int(offsets[-1])
        self.die = np.full(m, -1, np.int32)
        self.unit = np.zeros(m, np.int32)
        self.file, self.line, self.discriminator = np.zeros((3, m), np.uint32)
        self.is_leaf = np.zeros(m, np.bool_)
        self.is_leaf[offsets[1:][np.diff(offsets) > 0] - 1] = True
        dies = 0
        for group in groups:
            self._scatter(group, offsets[group.rows], dies)
            dies += len(group.offsets)

    def _scatter(self, group: Group, starts: I64, first_die: int) -> None:
        before = np.cumsum(group.lengths) - group.lengths
        places = np.repeat(starts - before, group.lengths) + np.arange(len(group.die))
        self.unit[places] = group.unit
        self.die[places] = np.where(group.die < 0, -1, group.die + first_die)
        known = group.lengths > 0
        leaves = (starts + group.lengths - 1)[known]
        self.file[leaves], self.line[leaves], self.discriminator[leaves] = group.leaf[:, known]

    def described(self, functions: Functions) -> tuple[I32, tuple[str, ...], U32]:
        """Name index of each frame, the names, and declaration lines; sets the outer lines."""
        names = Interned()
        # One more at the end, for the -1 of frames without a DIE.
        name = np.append(names.indices(functions.names), names.indices([""]))
        start_line = np.append(functions.decl_line, np.uint32(0))
        self._set_calls(functions)
        return name[self.die], names.texts, start_line[self.die]

    def _set_calls(self, functions: Functions) -> None:
        """Say where frames were left for others: at the call that was inlined there."""
        # The first row is the outermost of all: nothing is outside of it.
        inner = np.flatnonzero((self.die[1:] >= 0) & ~self.is_leaf[:-1]) + 1
        die = self.die[inner]
        self.file[inner - 1] = functions.call_file[die]
        self.line[inner - 1] = functions.call_line[die]
        self.discriminator[inner - 1] = functions.discriminator[die]


def _functions(groups: Sequence[Group]) -> Functions:
    """What the DIEs of all groups say, group after group."""
    zeros = np.zeros(0, np.uint32)
    parts = [Functions([], zeros, zeros, zeros, zeros)]
    before = np.cumsum([0, *(len(group.offsets) for group in groups)]) // _DIES_AT_ONCE
    pairs = zip(groups, before.tolist(), strict=False)
    for _, same in groupby(pairs, key=lambda pair: (id(pair[0].container), pair[1])):
        together = [group for group, _ in same]
        offsets = np.concatenate([group.offsets for group in together])
        parts.append(describe(together[0].container, offsets))
    return Functions(
        names=[name for part in parts for name in part.names],
        decl_line=np.concatenate([part.decl_line for part in parts]),
        call_file=np.concatenate([part.call_file for part in parts]),
        call_line=np.concatenate([part.call_line for part in parts]),
        discriminator=np.concatenate([part.discriminator for part in parts]),
    )


class Interned:
    """Texts, each once, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def indices(self, texts: Iterable[str]) -> I32:
        """Number of each text."""
        known = self._known
        return np.array([known.setdefault(text, len(known)) for text in texts], np.int32)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts by their numbers."""
        return tuple(self._known)


def assemble(groups: Sequence[Group], count: int, table_of: TableOf | None) -> Frames:
    """The frames of `count` addresses, of which each group holds some.

    Without line tables to look in, all files stay unknown.
    """
    offsets = np.zeros(count + 1, np.int64)
    for group in groups:
        offsets[group.rows + 1] = group.lengths
    np.cumsum(offsets, out=offsets)
    columns = _Columns(groups, offsets)
    function, names, start_line = columns.described(_functions(groups))
    file = np.zeros(len(function), np.int32)
    files: tuple[str, ...] = ("",)
    if table_of is not None:
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
