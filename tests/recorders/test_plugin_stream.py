"""Streams built by hand after plugin/stream.h, whole and damaged."""

from __future__ import annotations

import struct
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap
from lbr2pgo.recorders.plugin_stream import (
    BLOCK,
    BLOCK_COUNT,
    BLOCKS_MAX,
    COUNTERS_HEADER,
    TARGET_COUNT,
    TOTALS,
    How,
    NoteKind,
    RecordKind,
    read_streams,
)


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


WHOLE = [
    start(),
    record(RecordKind.COMM, 2, struct.pack("<II", 1, 0), "prögram"),
    record(RecordKind.MAP, 3, struct.pack("<QQQII", 0x1000, 0x2000, 0x40, 1, 0), "/a b"),
    sample(4, 0x1010, (0x1008, 0x1010, 2), (0x1020, 0x1000, 1)),
    record(RecordKind.BLOCK, 5, np.array([(1, 2, 3, 4, 1, 1, 1, 0)], BLOCK).tobytes()),
    record(99, 5, b"12345678", "from the future"),
    record(RecordKind.THREAD, 6, tid=7),
    sample(7, 0x1000, tid=7, callers=(0x1500, 0x1600)),
    record(RecordKind.EXIT, 8, tid=7),
    record(RecordKind.NOTE, 9, struct.pack("<II", 1, 2), "/bin/x"),
    sample(10, 0x1010, (1, 2, 3)),
]


def test_a_whole_stream(tmp_path: Path) -> None:
    (tmp_path / "5-0.lbr").write_bytes(b"".join(WHOLE))
    (stream,) = read_streams(tmp_path)
    assert (stream.start.pid, stream.start.how) == (5, How.AFRESH)
    mapping = Mmap(5, 5, 3, 0x1000, 0x2000, 0x40, "/a b")
    assert stream.events == (
        Comm(5, 5, 2, "prögram", True), mapping, Fork(5, 5, 7, 6), Exit(5, 7, 8),
    )  # fmt: skip
    assert stream.maps == {1: mapping}
    assert stream.blocks["target"].tolist() == [4]
    assert [(n.kind, n.error, n.text) for n in stream.notes] == [
        (NoteKind.EXEC_NOT_FOLLOWED, 2, "/bin/x")
    ]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_samples_keep_their_order_in_batches_of_any_size(most: int, tmp_path: Path) -> None:
    (tmp_path / "5-0.lbr").write_bytes(b"".join(WHOLE))
    (stream,) = read_streams(tmp_path)
    batches = list(stream.sample_batches(most))
    assert max(len(batch) for batch in batches) <= most
    assert [int(t) for batch in batches for t in batch.time] == [4, 7, 10]
    assert [int(t) for batch in batches for t in batch.tid] == [5, 7, 5]
    assert [int(t) for batch in batches for t in batch.ip] == [0x1010, 0x1000, 0x1010]
    assert np.concatenate([batch.entries for batch in batches]).tolist() == [
        [0x1008, 0x1010, 2], [0x1020, 0x1000, 1], [1, 2, 3],
    ]  # fmt: skip
    depths = [int(d) for batch in batches for d in np.diff(batch.offsets)]
    assert depths == [2, 0, 1]
    chains = [batch.chains.frames.tolist() for batch in batches if batch.chains is not None]
    assert [*chain.from_iterable(chains)] == [0x1010, 0x1000, 0x1500, 0x1600, 0x1010]


def test_a_cut_stream_keeps_every_whole_record(tmp_path: Path) -> None:
    data = b"".join(WHOLE)
    ends = np.cumsum([len(part) for part in WHOLE])
    for size in range(0, len(data), 17):
        path = tmp_path / "5-0.lbr"
        path.write_bytes(data[:size])
        streams = read_streams(tmp_path)
        whole = int(np.searchsorted(ends, size, side="right"))
        assert len(streams) == (whole > 0)
        for stream in streams:
            samples = sum(len(batch) for batch in stream.sample_batches(100))
            assert samples == sum(part in WHOLE[:whole] for part in (WHOLE[3], WHOLE[7], WHOLE[10]))


def test_a_fork_is_an_event(tmp_path: Path) -> None:
    (tmp_path / "5-0.lbr").write_bytes(start(1))
    (tmp_path / "9-0.lbr").write_bytes(start(3, how=1, parent="5-0.lbr", pid=9))
    parent, child = read_streams(tmp_path)
    assert parent.events == ()
    assert child.events == (Fork(9, 4, 9, 3),)
    assert child.start.parent_stream == "5-0.lbr"


def test_counters(tmp_path: Path) -> None:
    (tmp_path / "5-0.lbr").write_bytes(start())
    (stream,) = read_streams(tmp_path)
    assert stream.counters == ()
    totals = np.zeros(1, TOTALS)
    totals["taken"], totals["blocks"], totals["targets"] = 77, 2, 1
    with (tmp_path / "5-0.lbr.0").open("wb") as file:
        file.write(totals.tobytes().ljust(COUNTERS_HEADER, b"\0"))
        file.write(np.array([(1, 2, 0, 0), (3, 4, 0, 0)], BLOCK_COUNT).tobytes())
        file.seek(COUNTERS_HEADER + BLOCKS_MAX * BLOCK_COUNT.itemsize)
        file.write(np.array([(1, 2, 9, 0)], TARGET_COUNT).tobytes())
    (tmp_path / "5-0.lbr.1").write_bytes(totals.tobytes().ljust(COUNTERS_HEADER, b"\0"))
    (tmp_path / "5-0.lbr.2").write_bytes(b"cut short")
    (stream,) = read_streams(tmp_path)
    full, header_only = stream.counters
    assert full.counts["taken"].tolist() == [2, 4]
    assert full.targets["count"].tolist() == [9]
    assert int(header_only.totals["taken"]) == 77
    assert len(header_only.counts) == len(header_only.targets) == 0
