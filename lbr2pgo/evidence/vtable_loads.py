"""Which virtual tables each instruction loaded from: types of the objects that it was about."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.evidence.data_accesses import data_in_image
from lbr2pgo.model.branch_stacks import CallChains
from lbr2pgo.model.perf_abi import DATA_OP_LOAD
from lbr2pgo.native.row_ids import RowIds, RowSums
from lbr2pgo.program.elf.data_symbols import data_sections, data_symbols
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import numbers_in, offsets_of
from lbr2pgo.support.tables import Tabular, table

_MANGLED = b"_ZTV"
"""Itanium C++ ABI, 5.1.4.1, "Virtual Tables and RTTI"."""


UNKNOWN, FROM_OUTSIDE = 0, 1
"""Rows of `ReturnPaths`: nobody knows who called, or code outside of the image did."""


@table
class ReturnPaths(Tabular):
    """Call stacks as a trie, (n,) each, parents before children, which begins with those two."""

    parent: I64
    """-1 for the first two."""
    return_to: PlacedAddresses
    """Where the call returns to; 0 for the first two."""


@table
class VtableLoads(Tabular):
    """Of one program; columns of length n, ascending by instruction, table and call stack."""

    ip: PlacedAddresses
    symbol: I64
    """Row of the table in `Program.symbols`."""
    path: I64
    """Row of `paths`: who called, from the innermost code outside of the image on."""
    count: U64
    """Samples."""
    paths: ReturnPaths
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
        self._sums, self._paths = RowSums(), RowIds()
        zeros = np.zeros(2, np.uint64)
        self._paths.number_rows(zeros, zeros, np.array([UNKNOWN, FROM_OUTSIDE], np.uint64))
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
        symbol = self._objects.row[at[rows]].astype(np.uint64)
        path = self._path(batch.chains, chosen[rows], spaces[rows])
        self._sums.add_rows(ip[rows], symbol, path.astype(np.uint64), np.ones(len(rows), np.uint64))

    def _path(self, chains: CallChains | None, samples: I64, spaces: I64) -> I64:
        """The call stack of each of these samples (n,)."""
        if chains is None:
            return np.full(len(samples), UNKNOWN)
        first, past = chains.offsets[samples] + 1, chains.offsets[samples + 1]
        sizes = np.maximum(past - first, 0)
        frames = runtime_addresses(chains.frames[numbers_in(first, first + sizes)])
        return_to, is_inside = self._spaces.to_image(np.repeat(spaces, sizes), frames)
        start = offsets_of(sizes)[:-1]
        outside = np.append(np.flatnonzero(~is_inside), len(is_inside))
        depth = np.minimum(outside[np.searchsorted(outside, start)] - start, sizes)
        path = np.where(depth < sizes, FROM_OUTSIDE, UNKNOWN)
        for level in range(int(depth.max(initial=0)) - 1, -1, -1):  # the outermost first
            deep = np.flatnonzero(depth > level)
            callers = path[deep].astype(np.uint64)
            path[deep] = self._paths.number_rows(callers, return_to[start[deep] + level])
        return path

    def merge(self, other: VtableLoadCollector) -> None:
        """Take over what another one saw."""
        ip, symbol, path = map(np.ascontiguousarray, other._sums.rows().T)
        number = np.arange(len(other._paths), dtype=np.uint64)
        for row, (parent, return_to, _) in enumerate(other._paths.rows()):
            if row > FROM_OUTSIDE:
                caller = number[int(parent)]
                number[row] = self._paths.number_rows(np.array([caller]), np.array([return_to]))[0]
        self._sums.add_rows(ip, symbol, number[path.astype(np.int64)], other._sums.counts())
        self._has_accesses |= other._has_accesses

    def result(self) -> VtableLoads:
        """What was loaded where."""
        ip, symbol, path = self._sums.rows().T
        order = np.lexsort((path, symbol, ip))
        parent, return_to, _ = self._paths.rows().T
        caller = parent.astype(np.int64)
        caller[: FROM_OUTSIDE + 1] = -1
        return VtableLoads(
            placed_addresses(ip[order]), symbol[order].astype(np.int64),
            path[order].astype(np.int64), self._sums.counts()[order],
            ReturnPaths(caller, placed_addresses(return_to.copy())), self._has_accesses,
        )  # fmt: skip


VTABLE_LOADS = Finding("vtable loads", VtableLoadCollector)
