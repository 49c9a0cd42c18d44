"""Builds perf.data files of any kind, well-formed or not, record by record.

Written after include/uapi/linux/perf_event.h and perf.data-file-format.txt in the plainest way, so
that it can judge the reader: nothing here comes from the package.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from builders.zstd import zstd

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK = (
    1 << bit for bit in range(12)
)
IDENTIFIER = 1 << 16
REGS_USER, STACK_USER, WEIGHT, DATA_SRC = 1 << 12, 1 << 13, 1 << 14, 1 << 15
HW_INDEX, COUNTERS = 1 << 17, 1 << 19
FORMAT_GROUP = 8
SAMPLE_ID_ALL = 1 << 18
USE_CLOCKID = 1 << 25

Entry = tuple[int, int, int]


@dataclass(frozen=True)
class Event:
    """One `struct perf_event_attr` with its ids."""

    sample_type: int = IP | TID | TIME | BRANCH_STACK
    branch_sample_type: int = 9
    read_format: int = 0
    ids: tuple[int, ...] = ()
    type: int = 0
    config: int = 0
    flags: int = SAMPLE_ID_ALL
    size: int = 112
    name: str = "an event"
    clock: int | None = None
    """That of its times, as `clock_gettime` numbers them."""

    def attr(self) -> bytes:
        known = struct.pack(
            "<IIQQQQQIIQQQ", self.type, self.size, self.config, 1009, self.sample_type,
            self.read_format, self.flags | USE_CLOCKID * (self.clock is not None), 0, 0, 0, 0,
            self.branch_sample_type,
        ) + struct.pack("<QIi", 0, 0, self.clock or 0)  # fmt: skip
        return known.ljust(self.size, b"\0")[: self.size]

    def trailer(self, pid: int = 0, tid: int = 0, time: int = 0, sample_id: int = 0) -> bytes:
        if not self.flags & SAMPLE_ID_ALL:
            return b""
        fields = {
            TID: struct.pack("<ii", pid, tid), TIME: _u64(time), ID: _u64(sample_id),
            STREAM_ID: _u64(77), CPU: _u64(3), IDENTIFIER: _u64(sample_id),
        }  # fmt: skip
        return b"".join(raw for bit, raw in fields.items() if self.sample_type & bit)


@dataclass(frozen=True)
class Sample:
    """One sample; what its event does not record is not written."""

    stack: tuple[Entry, ...] = ()
    ip: int = 0x401000
    pid: int = 10
    tid: int = 11
    time: int = 1000
    sample_id: int = 0
    cpu: int = 1
    callchain: tuple[int, ...] = ()
    raw: bytes = b""
    group: tuple[int, ...] = (1,)
    """Counter values; only the first is written without FORMAT_GROUP."""
    rest: bytes = b""
    """What stands behind the stack."""
    address: int = 0xADD
    """Of data."""
    without_hw_index: bool = False

    def encode(self, event: Event) -> bytes:
        parts = {
            IDENTIFIER: _u64(self.sample_id), IP: _u64(self.ip),
            TID: struct.pack("<ii", self.pid, self.tid), TIME: _u64(self.time),
            ADDR: _u64(self.address), ID: _u64(self.sample_id), STREAM_ID: _u64(5),
            CPU: _u64(self.cpu), PERIOD: _u64(1009), READ: self._read(event.read_format),
            CALLCHAIN: _u64(len(self.callchain), *self.callchain),
            RAW: self._raw(), BRANCH_STACK: self._branch_stack(event.branch_sample_type),
        }  # fmt: skip
        body = b"".join(raw for bit, raw in parts.items() if event.sample_type & bit)
        return record(9, 2, body + self.rest)

    def _read(self, read_format: int) -> bytes:
        times = _u64(*[7] * (read_format & 3).bit_count())
        extras = (read_format >> 2 & 1) + (read_format >> 4 & 1)
        values = [_u64(value, *[value] * extras) for value in self.group]
        if read_format & FORMAT_GROUP:
            return _u64(len(values)) + times + b"".join(values)
        return values[0][:8] + times + values[0][8:]

    def _raw(self) -> bytes:
        raw = self.raw + bytes(-(len(self.raw) + 4) % 8)
        return struct.pack("<I", len(raw)) + raw

    def _branch_stack(self, branch_sample_type: int) -> bytes:
        head = _u64(len(self.stack))
        if branch_sample_type & HW_INDEX and not self.without_hw_index:
            head += _u64(0)
        counters = _u64(*[9] * len(self.stack)) if branch_sample_type & COUNTERS else b""
        return head + b"".join(_u64(*entry) for entry in self.stack) + counters


def _u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def text(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return raw + bytes(-len(raw) % 8)


def record(kind: int, misc: int, body: bytes, *, size: int | None = None) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body) if size is None else size) + body


def mmap(
    pid: int, start: int, length: int, path: str, trailer: bytes = b"", misc: int = 2
) -> bytes:
    body = struct.pack("<iiQQQ", pid, pid, start, length, 0x1000) + text(path)
    return record(1, misc, body + trailer)


def mmap2(
    pid: int, start: int, length: int, path: str, trailer: bytes = b"", *,
    misc: int = 2, identity: bytes = bytes(24), protection: int = 5, offset: int = 0x1000,
) -> bytes:  # fmt: skip
    body = struct.pack("<iiQQQ", pid, pid, start, length, offset)
    return record(
        10, misc, body + identity + struct.pack("<II", protection, 2) + text(path) + trailer
    )


def comm(pid: int, tid: int, name: str, trailer: bytes = b"", misc: int = 2) -> bytes:
    return record(3, misc, struct.pack("<ii", pid, tid) + text(name) + trailer)


def fork(pid: int, parent: int, tid: int, time: int, trailer: bytes = b"", kind: int = 7) -> bytes:
    return record(kind, 2, struct.pack("<iiiiQ", pid, parent, tid, parent, time) + trailer)


def exit_(pid: int, tid: int, time: int, trailer: bytes = b"") -> bytes:
    return fork(pid, pid, tid, time, trailer, kind=4)


def header_attr(event: Event) -> bytes:
    return record(64, 0, event.attr() + _u64(*event.ids))


def header_feature(feature: int, section: bytes) -> bytes:
    return record(80, 0, _u64(feature) + section)


def string(value: str) -> bytes:
    raw = value.encode() + b"\0"
    raw += bytes(-len(raw) % 64)
    return struct.pack("<I", len(raw)) + raw


def event_desc(events: Sequence[Event]) -> bytes:
    section = struct.pack("<II", len(events), events[0].size)
    for event in events:
        section += event.attr() + struct.pack("<I", len(event.ids)) + string(event.name)
        section += _u64(*event.ids)
    return section


def build_id_record(
    path: str,
    raw: bytes,
    *,
    size: int | None = None,
    pid: bool = True,
    padding: int = 0,
    kind: int = 0,
) -> bytes:
    misc = 2 if size is None else 2 | 1 << 15
    name = path.encode() + b"\0"
    name += bytes(-len(name) % 64)
    identity = raw.ljust(20, b"\0") + bytes([size or 0, 0, 0, 0])
    body = (struct.pack("<i", -1) if pid else b"") + identity + name
    return record(kind, misc, body) + bytes(padding)


@dataclass
class Packer:
    """Packs records into COMPRESSED ones, as one zstd stream that goes on from call to call."""

    kind: int = 81
    level: int = 3
    _stream: zstd.ZstdCompressor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._stream = zstd.ZstdCompressor(level=self.level)

    def payload(self, plain: bytes) -> bytes:
        packed: bytes = self._stream.compress(plain)
        return packed + self._stream.flush(zstd.ZstdCompressor.FLUSH_BLOCK)

    def pack(self, plain: bytes, payload_size: int = 60_000) -> bytes:
        packed = self.payload(plain)
        pieces = [packed[i : i + payload_size] for i in range(0, len(packed), payload_size)]
        return b"".join(map(self.record, pieces))

    def record(self, payload: bytes) -> bytes:
        if self.kind == 81:
            return record(81, 0, payload)
        padding = bytes(-len(payload) % 8)
        return record(83, 0, _u64(len(payload)) + payload + padding)


def file_form(
    events: Sequence[Event],
    records: bytes,
    features: Mapping[int, bytes] | None = None,
    *,
    magic: bytes = b"PERFILE2",
    data_size: int | None = None,
    event_types: bytes = b"",
) -> bytes:
    """A perf.data as perf writes it to a file."""
    size = 104
    ids_at = size
    ids = b"".join(_u64(*event.ids) for event in events)
    attrs_at = ids_at + len(ids)
    attrs = b""
    for event in events:
        attrs += event.attr() + _u64(ids_at, 8 * len(event.ids))
        ids_at += 8 * len(event.ids)
    types_at = attrs_at + len(attrs)
    data_at = types_at + len(event_types)
    features = dict(sorted((features or {}).items()))
    bits = sum(1 << feature for feature in features)
    head = magic + _u64(
        size, events[0].size + 16, attrs_at, len(attrs), data_at,
        len(records) if data_size is None else data_size, types_at, len(event_types),
    )  # fmt: skip
    head += bits.to_bytes(32, "little")
    at = data_at + len(records) + 16 * len(features)
    table = b""
    for section in features.values():
        table += _u64(at, len(section))
        at += len(section)
    return b"".join([head, ids, attrs, event_types, records, table, *features.values()])


def pipe_form(events: Iterable[Event], records: bytes, early: bytes = b"") -> bytes:
    """A perf.data as `perf record -o -` writes it."""
    return b"PERFILE2" + _u64(16) + early + b"".join(map(header_attr, events)) + records
