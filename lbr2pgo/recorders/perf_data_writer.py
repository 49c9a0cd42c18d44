"""`PerfDataWriter`: samples with branch stacks and address-space events into a perf.data file.

The data section grows as records come in, and the header's data size with it, so what was written
so far can be read even if the process is killed; `finish` adds the feature sections.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.address_space_events import KERNEL_PID, Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.recorders.perf_data_features import (
    BuildId,
    RecordedEvent,
    RecordingFacts,
    encode_attr,
    encode_features,
)
from lbr2pgo.recorders.perf_samples import MarkedChains, SampleLayout
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.errors import writable

__all__ = ["MarkedChains", "PerfDataWriter", "RecordedEvent", "RecordingFacts"]

_DATA_SIZE_AT = 48  # offset of data.size in the file header
_RECORDING = (
    "can't write the recording",
    "Name a file on a disk with room to spare that you may write to.",
)
_PROT_READ, _PROT_EXEC, _MAP_PRIVATE = 1, 4, 2


class PerfDataWriter:
    """Writes one perf.data file, record by record; a context manager that finishes it.

    All events share one layout of samples: IDENTIFIER, IP, TID, TIME, PERIOD, BRANCH_STACK, and
    CPU, CALLCHAIN, and ADDR with DATA_SRC where asked for. Whoever needs the file to appear whole
    or not at all writes beside it and renames. Raises OutputError where the file can't be written.
    """

    def __init__(
        self,
        path: Path,
        events: Sequence[RecordedEvent],
        facts: RecordingFacts | None = None,
        *,
        with_cpu: bool = False,
        with_callchain: bool = False,
        with_accesses: bool = False,
    ) -> None:
        if not events:
            raise ValueError("a recording needs at least one event")
        hw_index = {bool(e.branch_sample_type & abi.BRANCH_HW_INDEX) for e in events}
        if len(hw_index) != 1:
            raise ValueError("either all events record the hardware index or none")
        self._path = path
        self._facts = facts or RecordingFacts()
        self._layout = SampleLayout(with_cpu, with_callchain, hw_index.pop(), with_accesses)
        self._events = [
            (event, encode_attr(event, self._layout.sample_type), i + 1)
            for i, event in enumerate(events)
        ]
        self._periods = np.array([event.period for event in events], np.uint64)
        self._build_ids: dict[str, BuildId] = {}
        self._times: tuple[int, int] | None = None
        self._finished = False
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.finish()

    def event(self, event: SpaceEvent) -> None:
        """Write any address-space event."""
        match event:
            case Mmap():
                self.mmap(event)
            case Comm():
                self.comm(event)
            case Fork():
                self.fork(event)
            case Exit():
                self.exit(event)

    def mmap(self, event: Mmap) -> None:
        """Write a mapping as MMAP2; a build-id goes into the record and into the header."""
        kernel = event.pid == KERNEL_PID
        misc = abi.MISC_KERNEL if kernel else abi.MISC_USER
        identity = bytes(24)
        if event.build_id is not None:
            raw = bytes.fromhex(event.build_id)[: abi.BUILD_ID_BYTES]
            identity = struct.pack("<B3x20s", len(raw), raw)
            misc |= abi.MISC_MMAP_BUILD_ID
            self.build_id(event.path, event.build_id, in_kernel=kernel)
        if not event.executable:
            misc |= abi.MISC_MMAP_DATA
        protection = _PROT_READ | (_PROT_EXEC if event.executable else 0)
        body = struct.pack(
            "<iiQQQ24sII", event.pid, event.tid, event.start, event.length, event.file_offset,
            identity, protection, _MAP_PRIVATE,
        )  # fmt: skip
        self._record(abi.RECORD_MMAP2, misc, body + _text(event.path), event)

    def comm(self, event: Comm) -> None:
        """Write a thread's new name."""
        misc = abi.MISC_USER | (abi.MISC_COMM_EXEC if event.is_exec else 0)
        body = struct.pack("<ii", event.pid, event.tid) + _text(event.name)
        self._record(abi.RECORD_COMM, misc, body, event)

    def fork(self, event: Fork) -> None:
        """Write a new process, or a new thread of `pid` if the parent is the same."""
        parent = event.parent_pid
        body = struct.pack("<iiiiQ", event.pid, parent, event.tid, parent, event.time)
        self._record(abi.RECORD_FORK, abi.MISC_USER, body, event)

    def exit(self, event: Exit) -> None:
        """Write the end of a thread."""
        body = struct.pack("<iiiiQ", event.pid, event.pid, event.tid, event.tid, event.time)
        self._record(abi.RECORD_EXIT, abi.MISC_USER, body, event)

    def lost(self, count: int, *, pid: int, tid: int, time: int, event: int = 0) -> None:
        """Say that `count` samples of an event were lost."""
        sample_id = self._events[event][2]
        body = struct.pack("<QQ", sample_id, count)
        self._record(abi.RECORD_LOST, 0, body, Exit(pid, tid, time))

    def finished_round(self) -> None:
        """Promise that no later record is older than any record before the last such promise."""
        self._append(abi.RECORD_HEADER.pack(abi.RECORD_FINISHED_ROUND, 0, abi.RECORD_HEADER.size))

    def build_id(self, path: str, build_id: str, *, in_kernel: bool = False) -> None:
        """Name a file's build-id (hex) in the header."""
        self._build_ids[path] = BuildId(build_id, in_kernel)

    def samples(
        self,
        stacks: BranchStacks,
        *,
        period: U64 | None = None,
        cpu: npt.NDArray[np.uint32] | None = None,
        callchains: MarkedChains | None = None,
        hw_index: U64 | None = None,
    ) -> None:
        """Write a batch of samples in their order.

        `period`, `cpu` and `hw_index` have shape (n,); left out, they are the event's period, 0,
        and all ones (unknown, as the kernel writes it). An event of -1 counts as the first one.
        Raises ValueError for weights other than 1 and for stacks that no record can hold.
        """
        if len(stacks) == 0:
            return
        if np.any(stacks.weight != 1):
            raise ValueError("perf.data has no weights: repeat the samples")
        event = np.maximum(stacks.event, 0)
        words = self._layout.words(
            stacks,
            sample_ids=event.astype(np.uint64) + np.uint64(1),
            period=self._periods[event] if period is None else period,
            cpu=cpu,
            callchains=callchains,
            hw_index=hw_index,
        )
        first, last = int(stacks.time.min()), int(stacks.time.max())
        if self._times is not None:
            first, last = min(first, self._times[0]), max(last, self._times[1])
        self._times = first, last
        self._append(words.astype("<u8", copy=False).tobytes())

    def finish(self) -> None:
        """Add the header's features and close the file; does nothing the second time."""
        if self._finished:
            return
        self._finished = True
        features = encode_features(self._facts, self._events, self._build_ids, self._times)
        with writable(self._path, *_RECORDING), self._file:
            self._put_features(features)

    def _put_features(self, features: dict[int, bytes]) -> None:
        table_at = self._data_at + self._data_size
        at = table_at + len(features) * abi.SECTION.size
        table = b""
        for content in features.values():
            table += abi.SECTION.pack(at, len(content))
            at += len(content)
        self._put(table + b"".join(features.values()), table_at)
        self._put_header(sum(1 << feature for feature in features))

    def _open(self) -> None:
        ids = b"".join(struct.pack("<Q", sample_id) for _, _, sample_id in self._events)
        self._attrs_at = abi.FILE_HEADER.size + len(ids)
        attrs = b"".join(
            attr + abi.SECTION.pack(abi.FILE_HEADER.size + 8 * i, 8)
            for i, (_, attr, _) in enumerate(self._events)
        )
        self._data_at = self._attrs_at + len(attrs)
        self._data_size = 0
        with writable(self._path, *_RECORDING):
            self._file = self._path.open("wb", buffering=0)
            self._put(ids + attrs, abi.FILE_HEADER.size)
            self._put_header(0)

    def _put_header(self, features: int) -> None:
        attr_size = abi.ATTR_SIZE + abi.SECTION.size
        header = abi.FILE_HEADER.pack(
            abi.MAGIC, abi.FILE_HEADER.size, attr_size,
            self._attrs_at, len(self._events) * attr_size, self._data_at, self._data_size, 0, 0,
            features.to_bytes(abi.FEATURE_BITS // 8, "little"),
        )  # fmt: skip
        self._put(header, 0)

    def _put(self, content: bytes, at: int) -> None:
        rest = memoryview(content)
        while rest:
            written = os.pwrite(self._file.fileno(), rest, at)
            rest, at = rest[written:], at + written

    def _record(self, kind: int, misc: int, body: bytes, event: Mmap | Comm | Fork | Exit) -> None:
        trailer = self._layout.trailer(event.pid, event.tid, event.time)
        size = abi.RECORD_HEADER.size + len(body) + len(trailer)
        if size > abi.MAX_RECORD_SIZE:
            raise ValueError(f"a record of {size} bytes does not fit")
        self._append(abi.RECORD_HEADER.pack(kind, misc, size) + body + trailer)

    def _append(self, records: bytes) -> None:
        """Write whole records first, then the size that makes them count."""
        with writable(self._path, *_RECORDING):
            self._put(records, self._data_at + self._data_size)
            self._data_size += len(records)
            self._put(struct.pack("<Q", self._data_size), _DATA_SIZE_AT)


def _text(text: str) -> bytes:
    """A string with its terminating zero, padded to a word."""
    raw = text.encode("utf-8", "surrogateescape") + b"\0"
    return raw.ljust(abi.align(len(raw), 8), b"\0")
