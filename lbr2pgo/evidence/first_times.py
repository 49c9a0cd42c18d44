"""When code was first sampled."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import rows_by
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.tables import table

_NEVER = np.uint64(np.iinfo(np.uint64).max)


@table
class FirstTimes:
    """Ends of branches and when each was first in a sample of a process; (n,) each.

    Ascending by address, and then by process.
    """

    address: PlacedAddresses
    process: I64
    """0, 1, 2 … over all recordings."""
    time: U64
    """Nanoseconds, of that sample."""
    step: U64
    """How many ends stand before it in its stack, the oldest first: what one sample saw first."""


class FirstTimeCollector:
    """Keeps the earliest time of each end in each process, by its number."""

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        self._ids = RowIds()
        self._sources = 1
        self._time = np.zeros(0, np.uint64)
        self._step = np.zeros(0, np.uint64)

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        entries = np.diff(batch.offsets)
        time, past = np.repeat(batch.time, entries), np.repeat(batch.offsets[1:], entries)
        step = 2 * (past - 1 - np.arange(len(past))).astype(np.uint64)
        process = np.repeat(batch.pid, entries).astype(np.uint64)
        for space, rows in rows_by(np.repeat(samples.spaces, entries)):
            if space >= 0:
                for end, at in ((batch.from_[rows], step[rows]), (batch.to[rows], step[rows] + 1)):
                    image, inside = self._spaces.to_image(space, end)
                    kept = rows[inside]
                    source = np.zeros(len(kept), np.uint64)
                    self._keep(image[inside], source, process[kept], time[kept], at[inside])

    def _keep(
        self, address: U64 | PlacedAddresses, source: U64, process: U64, time: U64, step: U64
    ) -> None:
        number = self._ids.number_rows(address, source, process)
        new = np.full(len(self._ids) - len(self._time), _NEVER)
        before = np.concatenate([self._time, new])
        self._time = before.copy()
        np.minimum.at(self._time, number, time)
        self._step = np.concatenate([self._step, new])
        self._step[self._time < before] = _NEVER
        is_first = time == self._time[number]
        np.minimum.at(self._step, number[is_first], step[is_first])

    def merge(self, other: FirstTimeCollector) -> None:
        """Take over what another one saw."""
        address, source, process = other._ids.rows().T
        later = source + np.uint64(self._sources)
        self._keep(
            np.ascontiguousarray(address), later, np.ascontiguousarray(process),
            other._time, other._step,
        )  # fmt: skip
        self._sources += other._sources

    def result(self) -> FirstTimes:
        """Of all ends of branches in the program."""
        address, source, process = self._ids.rows().T
        owners = np.stack([source, process], axis=1)
        number = np.unique(owners, axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((number, address))
        return FirstTimes(
            placed_addresses(address[order]), number[order], self._time[order], self._step[order]
        )


FIRST_TIMES = Finding("first times", FirstTimeCollector)
