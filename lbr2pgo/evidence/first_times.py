"""When code was first sampled."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence._first_times import note
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64, extended
from lbr2pgo.support.tables import Tabular, table

_NEVER = int(np.iinfo(np.uint64).max)


@table
class FirstTimes(Tabular):
    """Ends of branches, and when each was first and last in a sample of a process; (n,) each.

    Ascending by address, and then by process.
    """

    address: PlacedAddresses
    process: I64
    """0, 1, 2 … over all recordings."""
    recording: I64
    """Which recording its process is in, in their order."""
    time: U64
    """Nanoseconds, of that sample."""
    step: U64
    """How many ends stand before it in its stack, the oldest first: what one sample saw first."""
    last: U64
    """Nanoseconds, of the last sample that it was in."""
    recordings: int
    """How many there are."""


class FirstTimeCollector:
    """Keeps the earliest and the latest time of each end in each process, by its number."""

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        self._ids = RowIds()
        self._sources = 1
        self._first, self._last, self._step = np.zeros((3, 0), np.uint64)

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        sizes = np.diff(batch.offsets)
        older = np.repeat(batch.offsets[1:], sizes) - 1 - np.arange(len(batch.entries))
        steps = (2 * older[:, np.newaxis] + np.arange(2)).astype(np.uint64)
        ends = runtime_addresses(batch.entries[:, :2])
        image, inside = self._spaces.to_image(np.repeat(samples.spaces, sizes), ends)
        time, process = (
            np.repeat(each, 2 * sizes).reshape(-1, 2)[inside]
            for each in (batch.time, batch.pid.astype(np.uint64))
        )
        source = np.zeros(len(time), np.uint64)
        number = self._number(placed_addresses(image[inside]), source, process)
        self._note(number, time, steps[inside], time)

    def _number(self, address: PlacedAddresses, source: U64, process: U64) -> I64:
        """Of ends in processes; new ones have no times yet."""
        number = self._ids.number_rows(address, source, process)
        size = len(self._ids)
        self._first, self._step = (
            extended(each, size, _NEVER) for each in (self._first, self._step)
        )
        self._last = extended(self._last, size, 0)
        return number

    def _note(self, number: I64, earliest: U64, step: U64, latest: U64) -> None:
        note(number, earliest, step, latest, self._first, self._step, self._last)

    def merge(self, other: FirstTimeCollector) -> None:
        """Take over what another one saw."""
        address, source, process = map(np.ascontiguousarray, other._ids.rows().T)
        source += np.uint64(self._sources)
        number = self._number(placed_addresses(address), source, process)
        self._note(number, other._first, other._step, other._last)
        self._sources += other._sources

    def result(self) -> FirstTimes:
        """Of all ends of branches in the program."""
        address, source, process = self._ids.rows().T
        owners = np.stack([source, process], axis=1)
        number = np.unique(owners, axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((number, address))
        return FirstTimes(
            placed_addresses(address[order]), number[order], source[order].astype(np.int64),
            self._first[order], self._step[order], self._last[order], self._sources,
        )  # fmt: skip


FIRST_TIMES = Finding("first times", FirstTimeCollector)
