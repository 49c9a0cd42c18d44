"""Where the simulated instruction cache lacked code: samples of an event of its own.

The software LBR makes them beside those of branches (`record --model`); they have no stacks, and
enter nothing else.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.model.perf_abi import FETCH_MISSES
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FetchMisses:
    """Of one program, ordered by address; columns of equal length."""

    address: PlacedAddresses
    """In a line of code that was missing."""
    count: U64
    """Samples."""
    elsewhere: int
    """Samples in other files."""


NO_FETCH_MISSES = FetchMisses(placed_addresses(np.zeros(0, np.uint64)), np.zeros(0, np.uint64), 0)
"""Of recordings that hold none."""


class FetchMissCollector:
    """Puts the samples of missing code into the program; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        named = [event.name == FETCH_MISSES for event in known.events]
        self._is_one = np.array([*named, False])  # the last is of samples without an event
        self._sums = RowSums()
        self._elsewhere = 0

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        chosen = np.flatnonzero(self._is_one[batch.event])
        spaces = self._spaces.spaces_of(batch.pid[chosen], batch.time[chosen])
        image, inside = self._spaces.to_image(spaces, runtime_addresses(batch.ip[chosen]))
        found = image[inside]
        self._add(found, np.ones(len(found), np.uint64))
        self._elsewhere += int((~inside).sum())

    def merge(self, other: FetchMissCollector) -> None:
        """Add what another one saw."""
        self._add(np.ascontiguousarray(other._sums.rows()[:, 0]), other._sums.counts())
        self._elsewhere += other._elsewhere

    def _add(self, address: U64 | PlacedAddresses, count: U64) -> None:
        zeros = np.zeros_like(address)
        self._sums.add_rows(address, zeros, zeros, count)

    def result(self) -> FetchMisses:
        """What was missing where."""
        address, count = self._sums.rows()[:, 0], self._sums.counts()
        order = np.argsort(address)
        return FetchMisses(placed_addresses(address[order]), count[order], self._elsewhere)


FETCH_MISS_FINDING = Finding("fetch-misses", FetchMissCollector)
