"""What tests of the perf.data reader share: a few records, and readings as plain tuples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from builders import perf_data as build
from builders.perf_data import Event, Sample

from lbr2pgo.sources.perf_data.reader import PerfData

Write = Callable[[bytes], PerfData]
Row = tuple[int, int, int, int, int, tuple[build.Entry, ...]]

STACK = ((0x401010, 0x401020, 2), (0x401030, 0x401040, 1 | 7 << 4))


def rows(source: PerfData) -> list[Row]:
    """(event, ip, pid, tid, time, stack) of every sample."""
    found = []
    for batch in source.batches():
        for i in range(len(batch)):
            stack = batch.entries[batch.offsets[i] : batch.offsets[i + 1]].tolist()
            scalars = (batch.event, batch.ip, batch.pid, batch.tid, batch.time)
            found.append((*(int(a[i]) for a in scalars), tuple(map(tuple, stack))))
    return found


def chains(source: PerfData) -> list[list[int]]:
    """The call chain of every sample; empty where the file holds none."""
    found = []
    for batch in source.batches():
        offsets = batch.offsets * 0 if batch.chains is None else batch.chains.offsets
        for start, end in pairwise(offsets.tolist()):
            found.append([] if batch.chains is None else batch.chains.frames[start:end].tolist())
    return found


def stacks(source: PerfData) -> list[tuple[build.Entry, ...]]:
    return [row[-1] for row in rows(source)]


def numbered(n: int, event: Event | None = None) -> tuple[list[bytes], list[int]]:
    """`n` sample records, and the ips that tell them apart."""
    ips = [0x401000 + i for i in range(n)]
    return [Sample(STACK, ip=ip).encode(event or Event()) for ip in ips], ips


def ips_of(source: PerfData) -> list[int]:
    return [row[1] for row in rows(source)]
