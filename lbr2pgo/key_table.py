"""A hash table in arrays that compiled loops fill and Python lets grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lbr2pgo.stacks import I64, U64

_FIRST_CAPACITY = 1 << 16

Fill = Callable[[U64, U64, npt.NDArray[np.uint8], int, int], tuple[int, int]]
"""Counts samples from a given one on as far as the table has room: gets keys, values, occupied,
first sample and used places; gives the first sample not counted and the used places."""


class KeyTable:
    """Two sums under each key of four numbers; memory grows with distinct keys only."""

    def __init__(self) -> None:
        self._used = 0
        self._allocate(_FIRST_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        self._keys: U64 = np.zeros((capacity, 4), dtype=np.uint64)
        self._values: U64 = np.zeros((capacity, 2), dtype=np.uint64)
        self._occupied: npt.NDArray[np.uint8] = np.zeros(capacity, dtype=np.uint8)

    def fill(self, fill: Fill, offsets: I64) -> None:
        """Count all samples; sample `i` adds at most `offsets[i + 1] - offsets[i]` keys."""
        done = 0
        while True:
            done, self._used = fill(self._keys, self._values, self._occupied, done, self._used)
            if done == len(offsets) - 1:
                return
            self._grow(int(offsets[done + 1] - offsets[done]))

    def _grow(self, longest: int) -> None:
        from lbr2pgo.kernels import traces

        old = self._keys, self._values, self._occupied
        capacity = 2 * len(self._occupied)
        while capacity - capacity // 4 < self._used + longest:
            capacity *= 2
        self._allocate(capacity)
        traces.rehash(*old, self._keys, self._values, self._occupied)

    def rows(self) -> tuple[U64, U64]:
        """Keys (n, 4) and their sums (n, 2), in no order that means anything."""
        rows = np.flatnonzero(self._occupied)
        return self._keys[rows], self._values[rows]
