"""Inline frames: what units said of addresses, put together in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.dwarf._frames import fill_frames
from lbr2pgo.program.dwarf._lines import FOUND
from lbr2pgo.program.dwarf.function import NumberedTexts, describe_all
from lbr2pgo.program.dwarf.line import LineTable
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.arrays import I32, I64, U32, Records
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import same_length, seal

TableOf = Callable[[int], LineTable | None]
"""The line table of a unit."""


@dataclass(frozen=True, slots=True)
class InlineFrames:
    """Inline frames of n addresses; address `i` owns frames `offsets[i]:offsets[i + 1]`.

    Outermost frame first, the leaf last. No frames where there is no debug information.
    """

    offsets: I64
    """(n + 1,), starting at 0, never decreasing, ending at m."""
    function: I32
    """(m,), index into `names`: the linkage name if there is one, else the name. The name is
    empty where code has a line but no function; llvm-profgen drops such a frame."""
    line: U32
    """(m,): of the instruction in the leaf, of the inlined call in the others; 0 if not known."""
    start_line: U32
    """(m,): where the frame's function is declared."""
    discriminator: U32
    """(m,), as encoded in DWARF."""
    file: I32
    """(m,), index into `files`: the file that `line` counts in; an empty path if not known."""
    names: tuple[str, ...]
    files: tuple[str, ...]

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "function", "line", "start_line", "discriminator", "file")

    @classmethod
    def none(cls, addresses: int) -> InlineFrames:
        """Of so many addresses, none has any."""
        zeros, indices = np.zeros(0, np.uint32), np.zeros(0, np.int32)
        offsets = np.zeros(addresses + 1, np.int64)
        return cls(offsets, indices, zeros, zeros, zeros, indices, (), ())

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Group(NamedTuple):
    """Frames of those addresses that one unit covers."""

    rows: I64
    """(k,): which of the addresses."""
    unit: int
    dwarf: Dwarf
    """Where the DIEs are."""
    lengths: I64
    """(k,): frames of each address."""
    described: Records
    """(d,) rows of `DESCRIPTION` of the DIEs of these frames."""
    die: I32
    """Row of the DIE of each frame, -1 if it has none; outermost first."""
    leaf: Records
    """(k,) rows of `FOUND`."""


def assemble(groups: Sequence[Group], count: int, table_of: TableOf) -> InlineFrames:
    """The frames of `count` addresses, of which each group holds some."""
    offsets, leaf, unit = _addresses(groups, count)
    die = _dies(groups, offsets)
    names = NumberedTexts()
    name, described = describe_all([(group.dwarf, group.described) for group in groups], names)
    number, line, discriminator, start_line = fill_frames(offsets, die, leaf, described)
    # One more at the end, for the -1 of frames without a DIE, and of DIEs without a name.
    nameless = names.numbers([""])
    name = np.append(np.where(name < 0, nameless, name), nameless)
    file, files = name_files(np.repeat(unit, np.diff(offsets)), number, table_of)
    return InlineFrames(
        offsets, name[die], line, start_line, discriminator, file, tuple(names.texts), files
    )


def _addresses(groups: Sequence[Group], count: int) -> tuple[I64, Records, I32]:
    """Of each address: offset of its frames, `FOUND`, unit."""
    lengths, leaf, unit = (
        np.zeros(count, np.int64),
        np.zeros(count, FOUND),
        np.zeros(count, np.int32),
    )
    for group in groups:
        lengths[group.rows], leaf[group.rows], unit[group.rows] = (
            group.lengths,
            group.leaf,
            group.unit,
        )
    return np.concatenate([[0], np.cumsum(lengths)]), leaf, unit


def _dies(groups: Sequence[Group], offsets: I64) -> I32:
    """DIE of each frame, counted through all groups, -1 if it has none."""
    die = np.full(offsets[-1], -1, np.int32)
    before = 0
    for group in groups:
        frames = numbers_in(offsets[group.rows], offsets[group.rows + 1])
        die[frames] = np.where(group.die < 0, -1, group.die + before)
        before += len(group.described)
    return die


def name_files(units: I32, numbers: U32, table_of: TableOf) -> tuple[I32, tuple[str, ...]]:
    """Index of each (unit, file number)'s path, and the paths."""
    keys, back = np.unique((units.astype(np.int64) << 32) | numbers, return_inverse=True)
    paths = NumberedTexts()
    indices = paths.numbers(_path(table_of(key >> 32), key & 0xFFFFFFFF) for key in keys.tolist())
    return indices[back], tuple(paths.texts)


def _path(table: LineTable | None, number: int) -> str:
    return "" if table is None else table.file_name(number)
