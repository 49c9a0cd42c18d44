"""Which data of the program was loaded and stored, by which threads.

Samples say it that have an address and a data source: `record --data` under emulation, and what
perf mem record takes by PEBS or IBS. Stacks, heaps and other files are counted together.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.model.perf_abi import DATA_OP_LOAD, DATA_OP_STORE
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.program.elf.data_symbols import DataSections, data_sections
from lbr2pgo.support.addresses import (
    LAST_ADDRESS,
    PlacedAddresses,
    RuntimeAddresses,
    placed_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I32, I64, U64, Bools, extended
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.tables import Tabular, table


@table
class DataAccesses(Tabular):
    """Of one program; columns of length n, ascending by address, thread, and whether they store."""

    address: PlacedAddresses
    """Of the data."""
    thread: I64
    """0, 1, 2 … over all recordings."""
    process: I64
    """Whose thread it is, likewise."""
    is_store: Bools
    count: U64
    """Samples."""
    first: I64
    """The earliest of them, among all of its thread's samples of accesses from 0 on."""
    last: I64
    """The latest."""
    elsewhere: int
    """Samples of other data."""


_NO_NUMBERS = np.zeros(0, np.int64)
_NO_COUNTS = np.zeros(0, np.uint64)
NO_ACCESSES = DataAccesses(
    placed_addresses(_NO_COUNTS), _NO_NUMBERS, _NO_NUMBERS, np.zeros(0, np.bool_),
    _NO_COUNTS, _NO_NUMBERS, _NO_NUMBERS, 0,
)  # fmt: skip
"""Of recordings that hold none."""


class DataAccessCollector:
    """Adds samples of accesses up; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        self._spaces = known.spaces
        self._sections = data_sections(known.program.image)
        self._threads, self._rows = RowIds(), RowIds()
        self._sources = 1
        self._taken = np.zeros(0, np.int64)
        """Samples of each thread so far."""
        self._count = np.zeros(0, np.uint64)
        self._first, self._last = np.zeros((2, 0), np.int64)
        self._elsewhere = 0

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        if batch.accesses is None:
            return
        operation = batch.accesses[:, 1] & np.uint64(DATA_OP_LOAD | DATA_OP_STORE)
        chosen = np.flatnonzero(operation)
        thread = self._numbered(
            np.zeros(len(chosen), np.uint64), batch.pid[chosen], batch.tid[chosen]
        )
        place = self._places(thread)
        spaces = self._spaces.spaces_of(batch.pid[chosen], batch.time[chosen])
        address = runtime_addresses(np.ascontiguousarray(batch.accesses[chosen, 0]))
        data, inside = data_in_image(self._spaces, spaces, address, self._sections)
        self._elsewhere += int((~inside).sum())
        is_store = operation[chosen][inside] & np.uint64(DATA_OP_STORE) != 0
        ones = np.ones(int(inside.sum()), np.uint64)
        self._note(data[inside], thread[inside], is_store, ones, place[inside], place[inside])

    def _numbered(self, source: U64, pid: I32, tid: I32) -> I64:
        """Of threads (n,); those not seen before have no samples yet."""
        pids, tids = (each.astype(np.uint32).astype(np.uint64) for each in (pid, tid))
        number = self._threads.number_rows(source, pids, tids)
        self._taken = extended(self._taken, len(self._threads), 0)
        return number

    def _places(self, thread: I64) -> I64:
        """The place (n,) of each sample among its thread's, which are counted on."""
        order = np.argsort(thread, kind="stable")
        begins = np.searchsorted(thread[order], thread[order])
        place = np.empty(len(thread), np.int64)
        place[order] = self._taken[thread[order]] + np.arange(len(thread)) - begins
        self._taken += np.bincount(thread, minlength=len(self._taken))
        return place

    def _note(
        self,
        address: PlacedAddresses,
        thread: I64,
        is_store: Bools,
        count: U64,
        first: I64,
        last: I64,
    ) -> None:
        number = self._rows.number_rows(
            np.ascontiguousarray(address), thread.astype(np.uint64), is_store.astype(np.uint64)
        )
        size = len(self._rows)
        self._count = extended(self._count, size, 0)
        self._first = extended(self._first, size, np.iinfo(np.int64).max)
        self._last = extended(self._last, size, -1)
        np.add.at(self._count, number, count)
        np.minimum.at(self._first, number, first)
        np.maximum.at(self._last, number, last)

    def merge(self, other: DataAccessCollector) -> None:
        """Take over what another one saw."""
        source, pid, tid = map(np.ascontiguousarray, other._threads.rows().T)
        number = self._numbered(source + np.uint64(self._sources), pid, tid)
        self._taken[number] = other._taken
        self._sources += other._sources
        address, thread, is_store = map(np.ascontiguousarray, other._rows.rows().T)
        self._note(
            placed_addresses(address), number[thread.astype(np.int64)], is_store != 0,
            other._count, other._first, other._last,
        )  # fmt: skip
        self._elsewhere += other._elsewhere

    def result(self) -> DataAccesses:
        """What was accessed."""
        address, thread, is_store = map(np.ascontiguousarray, self._rows.rows().T)
        order = np.lexsort((is_store, thread, address))
        threads = thread[order].astype(np.int64)
        process = np.unique(self._threads.rows()[:, :2], axis=0, return_inverse=True)[1].ravel()
        return DataAccesses(
            placed_addresses(address[order]), threads, process[threads], is_store[order] != 0,
            self._count[order], self._first[order], self._last[order], self._elsewhere,
        )  # fmt: skip


def data_in_image(
    spaces: AddressSpaces, space: I64, address: RuntimeAddresses, sections: DataSections
) -> tuple[PlacedAddresses, Bools]:
    """Translate addresses (n,) of data in spaces (n,), and tell which are in the image's sections.

    Spaces know where code is; a loader moves all segments of a file by as much (gABI, "Program
    Loading").
    """
    placed = placed_addresses(np.zeros(len(address), np.uint64))
    inside = np.zeros(len(address), np.bool_)
    for number in distinct(space[space >= 0]).tolist():
        rows = np.flatnonzero(space == number)
        for bias in {p.bias for p in spaces.pieces[number] if not p.slot}:
            moved = placed_addresses(address[rows] - np.uint64(bias & LAST_ADDRESS))
            found = sections.containing(moved) >= 0
            placed[rows[found]], inside[rows[found]] = moved[found], True
    return placed, inside


DATA_ACCESSES = Finding("data accesses", DataAccessCollector)
