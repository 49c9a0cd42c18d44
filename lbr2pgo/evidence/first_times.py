"""When code was first sampled."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import Tabular, table

_NEVER = np.uint64(np.iinfo(np.uint64).max)


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
        order = np.argsort(batch.time, kind="stable")
        entries = np.diff(batch.offsets)[order]
        rows_of = numbers_in(batch.offsets[order], batch.offsets[order + 1])
        step = 2 * (np.repeat(batch.offsets[order + 1], entries) - 1 - rows_of).astype(np.uint64)
        time = np.repeat(batch.time[order], entries)
        process = np.repeat(batch.pid[order], entries).astype(np.uint64)
        spaces = np.repeat(samples.spaces[order], entries)
        for end, side in ((batch.from_, 0), (batch.to, 1)):
            image, inside = self._spaces.to_image(spaces, end[rows_of])
            number = self._numbers(image[inside], np.uint64(0), process[inside])
            self._take_first(number, time[inside], step[inside] + np.uint64(side))
            self._take_last(number, time[inside])

    def _numbers(
        self, address: U64 | PlacedAddresses, source: U64 | np.uint64, process: U64
    ) -> I64:
        """Of ends in processes; new ones have no times yet."""
        number = self._ids.number_rows(address, np.zeros(len(address), np.uint64) + source, process)
        new = len(self._ids) - len(self._first)
        self._first, self._step = (
            np.concatenate([each, np.full(new, _NEVER)]) for each in (self._first, self._step)
        )
        self._last = np.concatenate([self._last, np.zeros(new, np.uint64)])
        return number

    def _take_first(self, number: I64, time: U64, step: U64) -> None:
        """Take ascending times; where a number comes again, numpy keeps what is assigned last."""
        before = self._first
        self._first = before.copy()
        self._first[number[::-1]] = time[::-1]
        np.minimum(self._first, before, out=self._first)
        self._step[self._first < before] = _NEVER
        is_first = time == self._first[number]
        np.minimum.at(self._step, number[is_first], step[is_first])

    def _take_last(self, number: I64, time: U64) -> None:
        """Take ascending times, likewise."""
        before = self._last
        self._last = before.copy()
        self._last[number] = time
        np.maximum(self._last, before, out=self._last)

    def merge(self, other: FirstTimeCollector) -> None:
        """Take over what another one saw."""
        address, source, process = map(np.ascontiguousarray, other._ids.rows().T)
        number = self._numbers(address, source + np.uint64(self._sources), process)
        order = np.argsort(other._first, kind="stable")
        self._take_first(number[order], other._first[order], other._step[order])
        order = np.argsort(other._last, kind="stable")
        self._take_last(number[order], other._last[order])
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
