"""What the plugin leaves behind: a stream of records a process, and its counters.

The formats are plugin/stream.h's; the names here follow it. A process that was killed leaves a
stream that ends anywhere, so a cut last record is dropped and everything before it is used.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.recorders.front_end import STRUCTURES

RECORD_HEADER = struct.Struct("<IIQiI")
_START = struct.Struct("<IIiiIIII")
_MAP = struct.Struct("<QQQII")
_NAME = struct.Struct("<II")
_NOTE = struct.Struct("<II")
_PERIOD = struct.Struct("<Q")
_VERSION = 2

BLOCK = np.dtype(
    [
        ("start", "<u8"), ("from", "<u8"), ("end", "<u8"), ("target", "<u8"),
        ("number", "<u4"), ("map", "<u4"), ("kind", "<u4"), ("reserved", "<u4"),
    ]
)  # fmt: skip
"""`struct block_record`."""
TOTALS = np.dtype(
    [
        (name, "<u8")
        for name in (
            "instructions", "taken", "not_taken", "mispredicted", "samples",
            "blocks", "targets", "uncounted", "lost_samples", "write_error",
            "unexplained", "wrong_returns", "wrong_directions", "wrong_targets", *STRUCTURES,
        )
    ]
)  # fmt: skip
"""`struct totals`."""
BLOCK_COUNT = np.dtype(
    [
        (name, "<u8")
        for name in ("not_taken", "taken", "not_taken_mispredicted", "taken_mispredicted")
    ]
)
"""`struct block_count`."""
TARGET_COUNT = np.dtype(
    [("block", "<u4"), ("target_block", "<u4"), ("count", "<u8"), ("mispredicted", "<u8")]
)
"""`struct target_count`."""
COUNTERS_HEADER = 4096
BLOCKS_MAX = 1 << 22

NOWHERE = 2**64 - 1
"""The target of a block that ends in no direct branch."""


class RecordKind(IntEnum):
    """`enum record_kind`."""

    START = 1
    MAP = 2
    COMM = 3
    THREAD = 4
    EXIT = 5
    SAMPLE = 6
    BLOCK = 7
    NOTE = 8
    MISS = 9
    PERIOD = 10
    STARTED = 11
    ACCESS = 12


SAMPLED = RecordKind.SAMPLE, RecordKind.MISS, RecordKind.ACCESS
"""Of which there are many: only their places are kept."""


class NoteKind(IntEnum):
    """`enum note`."""

    EXEC_NOT_FOLLOWED = 1
    NO_COUNTERS = 2
    NO_MEMORY = 3
    UNKNOWN_LOAD_ADDRESS = 4
    NO_STACK_POINTER = 5
    TOLD_TIME = 6
    TOLD_PROCESS = 7
    TOLD_BY_NETWORK = 8
    THREADS_WAIT = 9


class How(IntEnum):
    """How a process came to its stream: by `execve`, or as a copy of another."""

    AFRESH = 0
    FORK = 1


class Note(NamedTuple):
    """Something that could not be recorded."""

    kind: NoteKind
    error: int
    """errno, or 0."""
    text: str


class NewPeriod(NamedTuple):
    """A thread samples more rarely from here on."""

    before: int
    """Samples of all threads until then."""
    tid: int
    period: int


class Start(NamedTuple):
    """The first record of a stream."""

    time: int
    tid: int
    machine: int
    pid: int
    parent_pid: int
    how: How
    blocks: int
    """Forked: blocks up to this number are the parent's."""
    maps: int
    """Forked: maps up to this serial are the parent's."""
    parent_stream: str
    """File name of the parent's stream; empty unless forked."""


@dataclass(frozen=True)
class Counters:
    """What the threads that shared one virtual processor counted."""

    totals: npt.NDArray[np.void]
    """() of `TOTALS`."""
    counts: npt.NDArray[np.void]
    """(k,) of `BLOCK_COUNT`, by block number; none without --exact."""
    targets: npt.NDArray[np.void]
    """(m,) of `TARGET_COUNT`."""


@dataclass(frozen=True)
class Stream:
    """One process between its start (or fork, or exec) and its end (or exec)."""

    path: Path
    start: Start
    events: tuple[SpaceEvent, ...]
    maps: dict[int, Mmap]
    """Executable mappings by serial, from 1."""
    blocks: npt.NDArray[np.void]
    """(k,) of `BLOCK`, this stream's own, in order of number."""
    notes: tuple[Note, ...]
    samples_at: npt.NDArray[np.int64]
    """(n,): offset of each sample record in the file."""
    misses_at: npt.NDArray[np.int64]
    """(k,): the same of what a simulated instruction cache lacked."""
    accesses_at: npt.NDArray[np.int64]
    """(k,): the same of loads and stores."""
    counters: tuple[Counters, ...]
    """Of every virtual processor."""
    periods: tuple[NewPeriod, ...] = ()
    started: int | None = None
    """When its start-up ended; None where it has not."""

    @property
    def lost_samples(self) -> int:
        """How many could not be written."""
        return sum(int(c.totals["lost_samples"]) for c in self.counters)

    def words(self) -> npt.NDArray[np.uint64]:
        """(size // 8,): the whole file."""
        size = self.path.stat().st_size // 8
        return np.memmap(self.path, np.uint64, mode="r", shape=(size,))

    def times(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """When the records at these places (n,) were written, in nanoseconds."""
        return np.asarray(self.words()[at // 8 + 1])

    def threads(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Which thread each of them is of."""
        low: npt.NDArray[np.uint64] = self.words()[at // 8 + 2] & np.uint64(0xFFFFFFFF)
        return low.astype(np.uint32).view(np.int32)


def read_streams(directory: Path) -> list[Stream]:
    """All streams that a recording left in its directory, by the time they began."""
    streams = (_read_stream(path) for path in directory.glob("*.lbr"))
    return sorted((s for s in streams if s), key=lambda s: s.start.time)


def _read_stream(path: Path) -> Stream | None:
    """One stream; None if its process was killed before it wrote the first record."""
    if path.stat().st_size == 0:
        return None
    data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, mode="r")
    places = {kind: array("q") for kind in SAMPLED}
    records = _walk(data.data, places)
    first = next(records, None)
    if first is None or first.kind != RecordKind.START:
        return None
    start = _read_start(first)
    reader = _StreamReader(start, places[RecordKind.SAMPLE])
    for record in records:
        reader.take(record)
    return Stream(
        path=path,
        start=start,
        events=tuple(reader.events),
        maps=reader.maps,
        blocks=np.frombuffer(b"".join(reader.blocks), BLOCK),
        notes=tuple(reader.notes),
        samples_at=np.array(places[RecordKind.SAMPLE], np.int64),
        counters=tuple(_counters_beside(path)),
        periods=tuple(reader.periods),
        misses_at=np.array(places[RecordKind.MISS], np.int64),
        accesses_at=np.array(places[RecordKind.ACCESS], np.int64),
        started=reader.started,
    )


class _Record(NamedTuple):
    kind: int
    time: int
    tid: int
    body: memoryview
    text: str


def _walk(data: memoryview, places: Mapping[RecordKind, array[int]]) -> Iterator[_Record]:
    """Every whole record but those of `places`, into which their offsets are put."""
    at = 0
    while at + RECORD_HEADER.size <= len(data):
        kind, size, time, tid, text_size = RECORD_HEADER.unpack_from(data, at)
        if size < RECORD_HEADER.size + text_size or at + size > len(data):
            return
        if kind in places:
            places[kind].append(at)
            at += size
            continue
        body = data[at + RECORD_HEADER.size : at + size]
        text = b""
        if text_size:
            text = bytes(body)[_text_at(kind) :][:text_size]
        yield _Record(kind, time, tid, body, text.decode("utf-8", "surrogateescape"))
        at += size


def _text_at(kind: int) -> int:
    """Where the text of a record's body starts."""
    sizes: dict[int, int] = {RecordKind.START: _START.size, RecordKind.MAP: _MAP.size}
    return sizes.get(kind, _NAME.size)


def _read_start(record: _Record) -> Start:
    version, machine, pid, parent, how, blocks, maps, _ = _START.unpack_from(record.body)
    if version != _VERSION:
        raise ValueError(f"a stream of version {version}")
    return Start(record.time, record.tid, machine, pid, parent, How(how), blocks, maps, record.text)


class _StreamReader:
    """Sorts the records of one stream by what they are."""

    def __init__(self, start: Start, samples: Sized) -> None:
        self.start, self._samples = start, samples
        self.periods: list[NewPeriod] = []
        self.events: list[SpaceEvent] = []
        self.maps: dict[int, Mmap] = {}
        self.blocks: list[memoryview] = []
        self.notes: list[Note] = []
        self.started: int | None = None
        if start.how is How.FORK:
            self.events.append(Fork(start.pid, start.parent_pid, start.tid, start.time))

    def take(self, record: _Record) -> None:
        """Put one record where it belongs."""
        pid = self.start.pid
        match record.kind:
            case RecordKind.BLOCK:
                self.blocks.append(record.body)
            case RecordKind.MAP:
                self._take_map(record)
            case RecordKind.COMM:
                is_exec = bool(_NAME.unpack_from(record.body)[0])
                self.events.append(Comm(pid, record.tid, record.time, record.text, is_exec))
            case RecordKind.THREAD:
                self.events.append(Fork(pid, pid, record.tid, record.time))
            case RecordKind.EXIT:
                self.events.append(Exit(pid, record.tid, record.time))
            case _:
                self._take_own(record)

    def _take_own(self, record: _Record) -> None:
        """What no recorder of branches but this one has to say."""
        match record.kind:
            case RecordKind.NOTE:
                kind, error = _NOTE.unpack_from(record.body)
                self.notes.append(Note(NoteKind(kind), error, record.text))
            case RecordKind.STARTED:
                self.started = record.time
            case RecordKind.PERIOD:
                (period,) = _PERIOD.unpack_from(record.body)
                self.periods.append(NewPeriod(len(self._samples), record.tid, period))

    def _take_map(self, record: _Record) -> None:
        start, length, offset, serial, _ = _MAP.unpack_from(record.body)
        event = Mmap(self.start.pid, record.tid, record.time, start, length, offset, record.text)
        self.maps[serial] = event
        self.events.append(event)


def _counters_beside(stream: Path) -> Iterator[Counters]:
    for path in sorted(stream.parent.glob(stream.name + ".*")):
        counters = _read_counters(path)
        if counters is not None:
            yield counters


def totals_so_far(directory: Path) -> dict[str, int]:
    """What a recording has come to while it is running, by the names of `TOTALS`.

    Every virtual processor counts in a file of its own, which it shares with whoever reads it.
    """
    heads = [_read_totals(file) for path in directory.glob("*.lbr.*") for file in _opened(path)]
    return {name: sum(int(head[name]) for head in heads) for name in TOTALS.names or ()}


def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file of counters, if it has come to hold some."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size >= COUNTERS_HEADER:
            yield file


def _read_totals(file: BinaryIO) -> npt.NDArray[np.void]:
    head: npt.NDArray[np.void] = np.frombuffer(file.read(TOTALS.itemsize), TOTALS)[0]
    return head


def _read_counters(path: Path) -> Counters | None:
    size = path.stat().st_size
    if size < COUNTERS_HEADER:
        return None
    with path.open("rb") as file:
        totals = _read_totals(file)
        if size == COUNTERS_HEADER:
            return Counters(totals, np.zeros(0, BLOCK_COUNT), np.zeros(0, TARGET_COUNT))
        file.seek(COUNTERS_HEADER)
        counts = np.fromfile(file, BLOCK_COUNT, int(totals["blocks"]))
        file.seek(COUNTERS_HEADER + BLOCKS_MAX * BLOCK_COUNT.itemsize)
        targets = np.fromfile(file, TARGET_COUNT, int(totals["targets"]))
    return Counters(totals, counts, targets)
