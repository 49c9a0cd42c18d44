"""Streams built by hand after plugin/stream.h, whole and damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from builders.streams import record, sample, start

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
            assert len(stream.samples_at) == sum(
                part in WHOLE[:whole] for part in (WHOLE[3], WHOLE[7], WHOLE[10])
            )


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
