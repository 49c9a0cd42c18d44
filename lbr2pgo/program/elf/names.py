"""Names that stay in their string table until someone asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from lbr2pgo.support.arrays import I64


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
