"""A hash table in arrays that compiled loops fill and Python lets grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.support.arrays import I64, U64

if TYPE_CHECKING:
    from lbr2pgo.native.traces import Table

_FIRST_CAPACITY = 1 << 16

Fill = Callable[["Table", int, int], tuple[int, int]]
"""Counts samples from a given one on as far as the table has room: gets the table, first sample
and used places; gives the first sample not counted and the used places."""


class KeyTable:
    """Two sums under each key of four numbers; memory grows with distinct keys only."""

    def __init__(self) -> None:
        self._used = 0
        self._allocate(_FIRST_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        from lbr2pgo.native.traces import Table

        self._table = Table(
            keys=np.zeros((capacity, 4), dtype=np.uint64),
            values=np.zeros((capacity, 2), dtype=np.uint64),
            occupied=np.zeros(capacity, dtype=np.uint8),
        )

    def fill(self, fill: Fill, offsets: I64) -> None:
        """Count all samples; sample `i` adds at most `offsets[i + 1] - offsets[i]` keys."""
        done = 0
        while True:
            done, self._used = fill(self._table, done, self._used)
            if done == len(offsets) - 1:
                return
            self._grow(int(offsets[done + 1] - offsets[done]))

    def _grow(self, longest: int) -> None:
        from lbr2pgo.native.traces import rehash

        old = self._table
        capacity = 2 * len(old.occupied)
        while capacity - capacity // 4 < self._used + longest:
            capacity *= 2
        self._allocate(capacity)
        rehash(old, self._table)

    def rows(self) -> tuple[U64, U64]:
        """Keys (n, 4) and their sums (n, 2), in no order that means anything."""
        rows = np.flatnonzero(self._table.occupied)
        return self._table.keys[rows], self._table.values[rows]
