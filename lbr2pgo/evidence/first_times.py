"""When code was first sampled."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from lbr2pgo.evidence._first_times import note, note_stacks, number_branches
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64, extended
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import Tabular, end_to_end, table

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


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of branches, which may repeat; columns of one length."""

    address: PlacedAddresses
    source: U64
    process: U64
    first: U64
    step: U64
    last: U64


class FirstTimeCollector:
    """Keeps the earliest and the latest time of each branch of each process, by its number.

    Branches are told apart as they ran, and laid over the image when all were seen.
    """

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        self._branches, self._owners = RowIds(), RowIds()
        self._first, self._last, self._step = np.zeros((3, 0), np.uint64)
        self._others: list[_Ends] = []
        self._sources = 1

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch, space = samples.batch, samples.spaces
        owner = self._owners.number_rows(space.astype(np.uint64), batch.pid.astype(np.uint64))
        owner[space < 0] = -1
        number = number_branches(batch.offsets, batch.entries, owner, self._branches)
        size = len(self._branches)
        self._first, self._step = (
            extended(each, size, _NEVER) for each in (self._first, self._step)
        )
        self._last = extended(self._last, size, 0)
        note_stacks(number, batch.offsets, batch.time, self._first, self._step, self._last)

    def merge(self, other: FirstTimeCollector) -> None:
        """Take over what another one saw."""
        shift = np.uint64(self._sources)
        self._others += (replace(ends, source=ends.source + shift) for ends in other._ends())
        self._sources += other._sources

    def _ends(self) -> list[_Ends]:
        """Of branches in the program: what was seen here, and what others saw."""
        from_, to, owner = self._branches.rows().T
        space, process, _ = self._owners.rows()[owner.astype(np.int64)].T
        ends = runtime_addresses(np.stack((from_, to), axis=1))
        image, inside = self._spaces.to_image(space.astype(np.int64), ends)
        row, end = np.nonzero(inside)
        address, step = placed_addresses(image[inside]), self._step[row] + end.astype(np.uint64)
        source = np.zeros(len(row), np.uint64)
        own = _Ends(address, source, process[row], self._first[row], step, self._last[row])
        return [own, *self._others]

    def result(self) -> FirstTimes:
        """Of all ends of branches in the program."""
        columns = end_to_end(self._ends(), *(field.name for field in fields(_Ends)))
        address, source, process, earliest, steps, latest = columns
        known = RowIds()
        number = known.number_rows(address, source, process)
        first, step = np.full((2, len(known)), _NEVER, np.uint64)
        last = np.zeros(len(known), np.uint64)
        note(number, earliest, steps, latest, first, step, last)
        address, source, process = known.rows().T
        owners = np.stack([source, process], axis=1)
        number = np.unique(owners, axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((number, address))
        return FirstTimes(
            placed_addresses(address[order]), number[order], source[order].astype(np.int64),
            first[order], step[order], last[order], self._sources,
        )  # fmt: skip


FIRST_TIMES = Finding("first times", FirstTimeCollector)
