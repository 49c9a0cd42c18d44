"""The samples of a stream as `BranchStacks`: of branches, of missing code, of loads and stores."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.model.perf_abi import DATA_LOAD, DATA_STORE
from lbr2pgo.recorders.plugin_stream import RECORD_HEADER, RecordKind, Stream
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import numbers_in, offsets_of

_BODY = RECORD_HEADER.size // 8
"""Words before it."""


def sample_batches(
    stream: Stream, most: int, events: Mapping[RecordKind, int]
) -> Iterator[BranchStacks]:
    """Yield the samples of each kind that is an event (by its number), at most `most` at a time.

    Those of one kind come in the order in which they were taken.
    The disk space of what has been yielded is given back where the file system can do that,
    so a recording needs room only once: this works one time.
    """
    places = {
        RecordKind.SAMPLE: stream.samples_at,
        RecordKind.MISS: stream.misses_at,
        RecordKind.ACCESS: stream.accesses_at,
    }
    every = np.sort(np.concatenate([places[kind] for kind in events]))
    for first in range(0, len(every), most):
        piece = every[first : first + most]
        for kind, event in events.items():
            low, past = np.searchsorted(places[kind], [piece[0], piece[-1] + 1])
            if low < past:
                yield _READERS[kind](stream, places[kind][low:past], event)
        _give_back(stream.path, int(piece[-1]))


def _branches(stream: Stream, at: I64, event: int) -> BranchStacks:
    """Call stacks are the interrupted instruction alone unless they were recorded."""
    words = stream.words()
    ends = _ends(words, at)
    ip_at = at // 8 + _BODY + 1
    entries_at = ip_at + words[ip_at - 1].astype(np.int64)
    return BranchStacks(
        entries=np.asarray(words[numbers_in(entries_at, ends)]).reshape(-1, 3),
        offsets=offsets_of((ends - entries_at) // 3),
        pid=np.full(len(at), stream.start.pid, np.int32),
        tid=stream.threads(at),
        time=stream.times(at),
        event=np.full(len(at), event, np.int32),
        ip=runtime_addresses(words[ip_at]),
        weight=np.ones(len(at), np.uint64),
        chains=CallChains(words[numbers_in(ip_at, entries_at)], offsets_of(entries_at - ip_at)),
    )


def _misses(stream: Stream, at: I64, event: int) -> BranchStacks:
    ip = _field(stream, at, 0)
    return _without_branches(stream, at, event, ip, CallChains(ip, np.arange(len(at) + 1)))


def _accesses(stream: Stream, at: I64, event: int) -> BranchStacks:
    ip, address, is_store = (_field(stream, at, i) for i in range(3))
    source = np.where(is_store, np.uint64(DATA_STORE), np.uint64(DATA_LOAD))
    accesses = np.stack([address, source], axis=1)
    return _without_branches(stream, at, event, ip, _with_callers(stream, at), accesses)


def _with_callers(stream: Stream, at: I64) -> CallChains:
    """The call stacks of accesses: the instruction, and the return addresses behind all else."""
    words = stream.words()
    ip_at = at // 8 + _BODY
    callers_at, ends = ip_at + 3, _ends(words, at)
    first, past = np.stack((ip_at, callers_at), axis=1), np.stack((ip_at + 1, ends), axis=1)
    frames = np.asarray(words[numbers_in(first.ravel(), past.ravel())])
    return CallChains(frames, offsets_of(1 + ends - callers_at))


_READERS = {
    RecordKind.SAMPLE: _branches, RecordKind.MISS: _misses, RecordKind.ACCESS: _accesses,
}  # fmt: skip


def _ends(words: U64, at: I64) -> I64:
    """Behind the last word of each record."""
    ends: I64 = at // 8 + (words[at // 8] >> np.uint64(32)).astype(np.int64) // 8
    return ends


def _field(stream: Stream, at: I64, number: int) -> U64:
    """A word of the bodies of records."""
    return np.asarray(stream.words()[at // 8 + _BODY + number])


def _without_branches(
    stream: Stream, at: I64, event: int, ip: U64, chains: CallChains, accesses: U64 | None = None
) -> BranchStacks:
    n = len(at)
    return BranchStacks(
        entries=np.zeros((0, 3), np.uint64),
        offsets=np.zeros(n + 1, np.int64),
        pid=np.full(n, stream.start.pid, np.int32),
        tid=stream.threads(at),
        time=stream.times(at),
        event=np.full(n, event, np.int32),
        ip=runtime_addresses(ip),
        weight=np.ones(n, np.uint64),
        chains=chains,
        accesses=accesses,
    )


def _give_back(path: Path, size: int) -> None:
    """Turn the first bytes of a file into a hole; does nothing where that is impossible."""
    keep_size_and_punch_hole = 0x01 | 0x02  # Linux: include/uapi/linux/falloc.h
    with path.open("r+b") as file:
        ctypes.CDLL(None).fallocate(
            file.fileno(), keep_size_and_punch_hole, ctypes.c_int64(0), ctypes.c_int64(size)
        )
