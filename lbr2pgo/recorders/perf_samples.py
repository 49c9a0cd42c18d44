"""The layout of sample records in perf.data, and a batch of them as one array of words.

Order of the fields: include/uapi/linux/perf_event.h, PERF_RECORD_SAMPLE.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lbr2pgo.model import branch_stacks
from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.addresses import are_of_kernel
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import numbers_in


@dataclass(frozen=True, slots=True)
class MarkedChains:
    """Call chains of n samples; sample `i` owns `addresses[offsets[i]:offsets[i + 1]]`."""

    addresses: U64
    """(k,), innermost first, with perf's context markers (PERF_CONTEXT_USER…) among them."""
    offsets: I64
    """(n + 1,)"""

    @classmethod
    def of_user(cls, chains: branch_stacks.CallChains) -> MarkedChains:
        """The same with what perf puts in front of the user's frames."""
        marked = np.insert(chains.frames, chains.offsets[:-1], np.uint64(abi.CONTEXT_USER))
        return cls(marked, chains.offsets + np.arange(len(chains.offsets)))


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Which fields a PERF_RECORD_SAMPLE holds, each a multiple of one 64-bit word."""

    with_cpu: bool
    with_callchain: bool
    with_hw_index: bool
    with_accesses: bool = False

    @property
    def sample_type(self) -> int:
        """PERF_SAMPLE_* bits."""
        kind = (
            abi.SAMPLE_IDENTIFIER | abi.SAMPLE_IP | abi.SAMPLE_TID | abi.SAMPLE_TIME
            | abi.SAMPLE_PERIOD | abi.SAMPLE_BRANCH_STACK
        )  # fmt: skip
        kind |= abi.SAMPLE_CPU if self.with_cpu else 0
        kind |= abi.SAMPLE_ADDR | abi.SAMPLE_DATA_SRC if self.with_accesses else 0
        return kind | (abi.SAMPLE_CALLCHAIN if self.with_callchain else 0)

    def trailer(self, pid: int, tid: int, time: int) -> bytes:
        """`struct sample_id` at the end of a record that is no sample, for the first event."""
        cpu = bytes(8) if self.with_cpu else b""
        return struct.pack("<iiQ", pid, tid, time) + cpu + struct.pack("<Q", 1)

    def words(
        self,
        stacks: BranchStacks,
        *,
        sample_ids: U64,
        period: U64,
        cpu: npt.NDArray[np.uint32] | None,
        callchains: MarkedChains | None,
        hw_index: U64 | None,
    ) -> U64:
        """All records of a batch, as words."""
        n = len(stacks)
        address, source = self._accesses(stacks)
        columns = [sample_ids, stacks.ip, _pair(stacks.pid, stacks.tid), stacks.time, *address]
        if self.with_cpu:
            columns.append(np.zeros(n, np.uint64) if cpu is None else cpu.astype(np.uint64))
        columns.append(period)
        groups = [(columns, np.zeros(0, np.uint64), np.zeros(n, np.int64))]
        if self.with_callchain:
            chains = callchains or MarkedChains(np.zeros(0, np.uint64), np.zeros(n + 1, np.int64))
            depth = np.diff(chains.offsets)
            groups.append(([depth.astype(np.uint64)], chains.addresses, depth))
        depth = np.diff(stacks.offsets)
        heads = [depth.astype(np.uint64)]
        if self.with_hw_index:
            heads.append(np.full(n, -1).astype(np.uint64) if hw_index is None else hw_index)
        groups.append((heads, stacks.entries.ravel(), 3 * depth))
        groups.append((source, np.zeros(0, np.uint64), np.zeros(n, np.int64)))
        return _interleave(_kinds(stacks.ip), groups)

    def _accesses(self, stacks: BranchStacks) -> tuple[list[U64], list[U64]]:
        """Columns of addresses of data and of what was done with these; none unless asked for."""
        if not self.with_accesses:
            return [], []
        if stacks.accesses is None:
            none = np.zeros(len(stacks), np.uint64)
            return [none], [none + np.uint64(abi.DATA_NONE)]
        return [stacks.accesses[:, 0]], [stacks.accesses[:, 1]]


_Group = tuple[list[U64], U64, I64]
"""Columns of one word a sample, then a run of words a sample: all runs, and their lengths."""


def _interleave(kinds: U64, groups: list[_Group]) -> U64:
    """Records whose first word is `kinds` with the size filled in, followed by the groups."""
    lengths = np.ones(len(kinds), np.int64)
    for columns, _, run_lengths in groups:
        lengths += len(columns) + run_lengths
    sizes = 8 * lengths
    if sizes.max() > abi.MAX_RECORD_SIZE:
        raise ValueError(f"sample {sizes.argmax()} needs {sizes.max()} bytes, too many for perf")
    ends = np.cumsum(lengths)
    words = np.empty(ends[-1], np.uint64)
    at = ends - lengths
    words[at] = kinds | sizes.astype(np.uint64) << np.uint64(48)
    at = at + 1
    for columns, run, run_lengths in groups:
        for column in columns:
            words[at] = column
            at = at + 1
        words[numbers_in(at, at + run_lengths)] = run
        at = at + run_lengths
    return words


def _kinds(ip: U64) -> U64:
    """Type and misc of each sample's header; upper-half addresses are the kernel's."""
    mode = np.where(are_of_kernel(ip), abi.MISC_KERNEL, abi.MISC_USER).astype(np.uint64)
    return np.uint64(abi.RECORD_SAMPLE) | mode << np.uint64(32)


def _pair(low: npt.NDArray[np.int32], high: npt.NDArray[np.int32]) -> U64:
    mask = np.uint64(0xFFFFFFFF)
    words: U64 = low.astype(np.uint64) & mask | high.astype(np.uint64) << np.uint64(32)
    return words
