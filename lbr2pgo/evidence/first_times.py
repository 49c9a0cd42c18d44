"""When code was first sampled."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import rows_by
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.addresses import PlacedAddresses, RuntimeAddresses, placed_addresses
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.tables import table

_NEVER = np.uint64(np.iinfo(np.uint64).max)


@table
class FirstTimes:
    """Ends of branches and when each was first in a sample; (n,) each, ascending by address."""

    address: PlacedAddresses
    time: U64
    """Nanoseconds."""


class FirstTimeCollector:
    """Keeps the earliest time of each end, by its number."""

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        self._ids = RowIds()
        self._time = np.zeros(0, np.uint64)

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        entries = np.diff(batch.offsets)
        time = np.repeat(batch.time, entries)
        for space, rows in rows_by(np.repeat(samples.spaces, entries)):
            if space >= 0:
                for end in (batch.from_[rows], batch.to[rows]):
                    self._add(space, end, time[rows])

    def _add(self, space: int, end: RuntimeAddresses, time: U64) -> None:
        image, inside = self._spaces.to_image(space, end)
        self._keep(image[inside], time[inside])

    def _keep(self, address: U64 | PlacedAddresses, time: U64) -> None:
        number = self._ids.number_rows(address, np.zeros_like(address))
        new = np.full(len(self._ids) - len(self._time), _NEVER)
        self._time = np.concatenate([self._time, new])
        np.minimum.at(self._time, number, time)

    def merge(self, other: FirstTimeCollector) -> None:
        """Take over what another one saw."""
        self._keep(np.ascontiguousarray(other._ids.rows()[:, 0]), other._time)

    def result(self) -> FirstTimes:
        """Of all ends of branches in the program."""
        address = self._ids.rows()[:, 0]
        order = np.argsort(address)
        return FirstTimes(placed_addresses(address[order]), self._time[order])


FIRST_TIMES = Finding("first times", FirstTimeCollector)
