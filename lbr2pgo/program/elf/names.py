"""Names that stay in their string table until someone asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from lbr2pgo.support.arrays import I64
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Names(Sequence[str]):
    """Strings that end with a NUL, by their offsets in a table."""

    table: bytes
    offset: I64
    """(n,); -1 stands for an empty name."""

    def __len__(self) -> int:
        return len(self.offset)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Names: ...
    def __getitem__(self, index: int | slice) -> str | Names:
        if isinstance(index, slice):
            return Names(self.table, self.offset[index])
        return self.raw(index).decode("utf-8", "replace")

    def raw(self, index: int) -> bytes:
        """One name as it is in the file."""
        start = int(self.offset[index])
        if start < 0:
            return b""
        end = self.table.find(0, start)
        return self.table[start : end if end >= 0 else len(self.table)]

    def take(self, rows: I64) -> Names:
        """The names of these rows, and an empty one for each row -1."""
        offset = self.offset[rows] if len(self.offset) else rows
        offset[rows < 0] = -1
        return Names(self.table, offset)


def offsets_inside(offset: I64, table: bytes) -> I64:
    """The offsets, -1 in place of those outside the table."""
    return np.where(offset < max(1, len(table)), offset, -1)


def refuse_overlaps(path: str, whose: str, table: bytes, offset: I64) -> None:
    """Raise InputError if names share so much of the table that all would not fit into memory."""
    ends = np.append(np.flatnonzero(np.frombuffer(table, np.uint8) == 0), len(table))
    own = offset[offset >= 0]
    total = int((ends[np.searchsorted(ends, own)] - own).sum())
    if total > 16 * len(table) + 256 * len(offset) + (1 << 20):
        raise InputError(
            f"the {whose}' names overlap: together they are {total} bytes long, "
            f"from a string table of {len(table)}",
            where=path,
            cure="The file is damaged, or made to do damage: link it again.",
        )
