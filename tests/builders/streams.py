"""Records of a stream, after plugin/records.h."""

from __future__ import annotations

import struct

from lbr2pgo.recorders.plugin_stream import RecordKind


def record(kind: int, time: int, body: bytes = b"", text: str = "", tid: int = 5) -> bytes:
    content = body + text.encode()
    size = (24 + len(content) + 7) // 8 * 8
    return struct.pack("<IIQiI", kind, size, time, tid, len(text.encode())) + content.ljust(
        size - 24, b"\0"
    )


def start(time: int = 1, how: int = 0, parent: str = "", pid: int = 5, blocks: int = 0) -> bytes:
    body = struct.pack("<IIiiIIII", 2, 62, pid, 4, how, blocks, 0, 0)
    return record(RecordKind.START, time, body, parent, tid=pid)


def sample(
    time: int, ip: int, *entries: tuple[int, int, int], tid: int = 5, callers: tuple[int, ...] = ()
) -> bytes:
    words = [1 + len(callers), ip, *callers, *(word for entry in entries for word in entry)]
    return record(RecordKind.SAMPLE, time, struct.pack(f"<{len(words)}Q", *words), tid=tid)


def access(
    time: int,
    ip: int,
    address: int,
    is_store: bool = False,
    tid: int = 5,
    callers: tuple[int, ...] = (),
) -> bytes:
    words = (ip, address, is_store, *callers)
    return record(RecordKind.ACCESS, time, struct.pack(f"<{len(words)}Q", *words), tid=tid)


def miss(time: int, address: int) -> bytes:
    return record(RecordKind.MISS, time, struct.pack("<Q", address))
