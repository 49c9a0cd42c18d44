"""Which virtual tables each instruction loaded from: types of the objects that it was about."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.evidence.data_accesses import data_in_image
from lbr2pgo.model.perf_abi import DATA_OP_LOAD
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.program.elf.data_symbols import data_sections, data_symbols
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.tables import Tabular, table

_MANGLED = b"_ZTV"
"""Itanium C++ ABI, 5.1.4.1, "Virtual Tables and RTTI"."""


@table
class VtableLoads(Tabular):
    """Of one program; columns of length n, ascending by instruction and table."""

    ip: PlacedAddresses
    symbol: I64
    """Row of the table in `Program.symbols`."""
    count: U64
    """Samples."""
    has_accesses: bool
    """Whether any data was seen to be accessed."""


class VtableLoadCollector:
    """Adds samples of loads up; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        program = known.program
        self._spaces = known.spaces
        self._sections = data_sections(program.image)
        self._objects = data_symbols(program.symbols)
        self._is_table = program.symbols.names.take(self._objects.row).start_with(_MANGLED)
        self._sums = RowSums()
        self._has_accesses = False

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        if batch.accesses is None:
            return
        chosen = np.flatnonzero(batch.accesses[:, 1] & np.uint64(DATA_OP_LOAD))
        self._has_accesses |= len(chosen) > 0
        spaces = self._spaces.spaces_of(batch.pid[chosen], batch.time[chosen])
        ip, in_code = self._spaces.to_image(spaces, runtime_addresses(batch.ip[chosen]))
        loaded = runtime_addresses(np.ascontiguousarray(batch.accesses[chosen, 0]))
        data, in_data = data_in_image(self._spaces, spaces, loaded, self._sections)
        at = np.where(in_code & in_data, self._objects.containing(data), -1)
        rows = np.flatnonzero(np.append(self._is_table, False)[at])
        self._add(
            ip[rows], self._objects.row[at[rows]].astype(np.uint64), np.ones(len(rows), np.uint64)
        )

    def _add(self, ip: U64 | PlacedAddresses, symbol: U64, count: U64) -> None:
        self._sums.add_rows(ip, symbol, np.zeros_like(symbol), count)

    def merge(self, other: VtableLoadCollector) -> None:
        """Take over what another one saw."""
        ip, symbol, _ = map(np.ascontiguousarray, other._sums.rows().T)
        self._add(ip, symbol, other._sums.counts())
        self._has_accesses |= other._has_accesses

    def result(self) -> VtableLoads:
        """What was loaded where."""
        ip, symbol, _ = self._sums.rows().T
        order = np.lexsort((symbol, ip))
        return VtableLoads(
            placed_addresses(ip[order]), symbol[order].astype(np.int64),
            self._sums.counts()[order], self._has_accesses,
        )  # fmt: skip


VTABLE_LOADS = Finding("vtable loads", VtableLoadCollector)
