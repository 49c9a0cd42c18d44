from __future__ import annotations

import struct

import numpy as np
import pytest

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap
from lbr2pgo.sources.perf_data.attr import PerfAttr
from lbr2pgo.sources.perf_data.space_records import SPACE_TYPES, RecordTimes, SpaceRecords
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


PLACE = struct.pack("<iiQQQ", 7, 8, 0x400000, 0x1000, 0x2000)
EXECUTABLE = struct.pack("<24sII", b"", 5, 0)


def mapping(*, build_id: str | None = None, executable: bool = True) -> Mmap:
    return Mmap(
        7, 8, 99, RuntimeAddress(0x400000), 0x1000, FileOffset(0x2000), "/bin/a", build_id,
        executable,
    )  # fmt: skip


RECORDS = {
    record(abi.RECORD_MMAP, PLACE + b"/bin/a\0\0"): mapping(),
    record(abi.RECORD_MMAP, PLACE + b"/bin/a\0", abi.MISC_MMAP_DATA): mapping(executable=False),
    record(abi.RECORD_MMAP2, PLACE + EXECUTABLE + b"/bin/a\0"): mapping(),
    record(abi.RECORD_MMAP2, PLACE + bytes(32) + b"/bin/a\0"): mapping(),
    record(abi.RECORD_MMAP2, PLACE + struct.pack("<24sII", b"", 3, 0) + b"/bin/a\0"): mapping(
        executable=False
    ),
    record(
        abi.RECORD_MMAP2, PLACE + struct.pack("<B3x20sII", 2, b"\x0a\xff", 5, 0) + b"/bin/a\0",
        abi.MISC_MMAP_BUILD_ID,
    ): mapping(build_id="0aff"),
    record(abi.RECORD_COMM, struct.pack("<ii", 7, 8) + b"sq\0x"): Comm(7, 8, 99, "sq", False),
    record(abi.RECORD_COMM, struct.pack("<ii", 7, 8) + b"sq\0", abi.MISC_COMM_EXEC): Comm(
        7, 8, 99, "sq", True
    ),
    record(abi.RECORD_FORK, struct.pack("<iiiiQ", 9, 7, 10, 8, 0)): Fork(9, 7, 10, 99),
    record(abi.RECORD_EXIT, struct.pack("<iiiiQ", 9, 7, 10, 8, 0)): Exit(9, 10, 99),
}  # fmt: skip


def read(raw: bytes, records: SpaceRecords, at: int = 99) -> int:
    return records.add(np.frombuffer(raw, np.uint8), np.array([0]), at, [])


@pytest.mark.parametrize(("raw", "event"), RECORDS.items())
def test_a_record_is_what_the_kernel_wrote(raw: bytes, event: object) -> None:
    records = SpaceRecords()
    assert read(raw, records) == 0
    assert list(records.log()) == [event]


@pytest.mark.parametrize("kind", SPACE_TYPES)
def test_a_record_that_is_too_short_is_left_out(kind: int) -> None:
    records = SpaceRecords()
    assert read(record(kind, bytes(7)), records) == 1
    assert list(records.log()) == []


def attr(sample_type: int, *ids: int) -> PerfAttr:
    return PerfAttr(0, 0, sample_type, 0, abi.ATTR_SAMPLE_ID_ALL, 0, ids)


def times_of(attrs: list[PerfAttr], *records: bytes) -> list[int]:
    sizes = np.array([len(each) for each in records])
    data, at = np.frombuffer(b"".join(records), np.uint8), np.cumsum(sizes) - sizes
    positions = np.full(len(records), 3, np.uint64)
    return RecordTimes(attrs).of(data, at, sizes, positions).tolist()


def test_the_time_stands_at_the_end_where_the_record_s_event_has_it() -> None:
    both = abi.SAMPLE_TIME | abi.SAMPLE_IDENTIFIER
    attrs = [attr(both, 1), attr(both | abi.SAMPLE_CPU, 2)]
    first = record(abi.RECORD_EXIT, bytes(16) + struct.pack("<QQ", 55, 1))
    second = record(abi.RECORD_EXIT, bytes(16) + struct.pack("<QQQ", 66, 0, 2))
    of_none = record(abi.RECORD_EXIT, bytes(16) + struct.pack("<QQ", 77, 9))
    assert times_of(attrs, first, second, of_none) == [55, 66, 77]


def test_the_position_orders_records_where_some_have_no_time() -> None:
    raw = record(abi.RECORD_EXIT, bytes(16) + struct.pack("<Q", 55))
    assert times_of([attr(abi.SAMPLE_TIME)], raw) == [55]
    assert times_of([attr(abi.SAMPLE_TIME), attr(abi.SAMPLE_TID)], raw) == [3]
    assert times_of([attr(abi.SAMPLE_TIME)], record(abi.RECORD_EXIT, b"")) == [3]
    assert times_of([], raw) == [3]
