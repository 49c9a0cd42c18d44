"""Names that stay in their string table until someone asks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import overload

import numpy as np

from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Names(Sequence[str]):
    """Strings that end with a NUL, by their offsets in a table."""

    table: bytes
    offset: I64
    """(n,); -1 stands for an empty name."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """A table of these."""
        raw = [name.encode() for name in names]
        size = np.array([len(name) + 1 for name in raw], np.int64)
        return cls(b"\0".join(raw), np.cumsum(size) - size)

    @classmethod
    def joined(cls, parts: Sequence[Names]) -> Names:
        """Those of each, one after the other."""
        places = np.cumsum([0, *(len(part.table) + 1 for part in parts)]).tolist()
        moved = [
            np.where(part.offset < 0, -1, part.offset + place)
            for part, place in zip(parts, places, strict=False)
        ]
        return cls(b"".join(part.table + b"\0" for part in parts), np.concatenate(moved))

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

    def all_raw(self) -> list[bytes]:
        """All names as they are in the file."""
        start, end = self._bounds
        table = self.table
        return [table[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]

    def take(self, rows: I64) -> Names:
        """The names of these rows, and an empty one for each row -1."""
        offset = self.offset[rows] if len(self.offset) else np.full(len(rows), -1)
        offset[rows < 0] = -1
        return Names(self.table, offset)

    def start_with(self, prefix: bytes) -> Bools:
        """(n,): whether each name begins so; a NUL in the prefix stands for the name's end."""
        table = np.frombuffer(self.table, np.uint8)
        rows = np.flatnonzero(self.offset >= 0)
        for i, byte in enumerate(prefix):
            at = self.offset[rows] + i
            is_inside = at < len(table)
            matches = ~is_inside if byte == 0 else np.zeros(len(rows), np.bool_)
            matches[is_inside] = table[at[is_inside]] == byte
            rows = rows[matches]
        found = np.zeros(len(self), np.bool_)
        found[rows] = True
        return found

    def rows_holding(self, parts: Collection[bytes]) -> I64:
        """Rows of names that hold one of the parts; of names that overlap with one, a few more."""
        hits = [m.start() for part in parts for m in re.finditer(re.escape(part), self.table)]
        if not hits:
            return np.empty(0, np.int64)
        ends = self._ends
        strings = distinct(np.searchsorted(ends, np.array(hits)))
        holds = np.isin(np.searchsorted(ends, self.offset), strings)
        return np.flatnonzero(holds & (self.offset >= 0))

    def rows_of(self, wanted: Collection[bytes]) -> dict[bytes, list[int]]:
        """Rows of each of the names that there are, ascending."""
        found: dict[bytes, list[int]] = {}
        if not wanted:
            return found
        start, end = self._bounds
        rows = np.flatnonzero(np.isin(end - start, [*{len(name) for name in wanted}]))
        for row, a, b in zip(
            *(each.tolist() for each in (rows, start[rows], end[rows])), strict=True
        ):
            if (name := self.table[a:b]) in wanted:
                found.setdefault(name, []).append(row)
        return found

    @property
    def _bounds(self) -> tuple[I64, I64]:
        """Where each name begins and ends; those without one are empty."""
        start = np.where(self.offset < 0, len(self.table), self.offset)
        ends = self._ends
        return start, ends[np.searchsorted(ends, start)]

    @property
    def _ends(self) -> I64:
        """Where the strings of the table end."""
        table: U8 = np.frombuffer(self.table, np.uint8)
        return np.append(np.flatnonzero(table == 0), len(self.table))


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
