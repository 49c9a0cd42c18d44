from __future__ import annotations

import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.perf_readings import STACK, Write, rows, stacks

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap


def test_reads_events_of_address_spaces_in_the_order_of_their_times(write: Write) -> None:
    event = Event(build.IDENTIFIER | build.IP | build.TID | build.TIME | build.BRANCH_STACK)

    def at(time: int) -> bytes:
        return event.trailer(10, 11, time)

    identity = b"\x04\0\0\0" + bytes.fromhex("deadbeef").ljust(20, b"\0")
    records = [
        build.exit_(12, 13, 90, at(90)),
        build.mmap(10, 0x400000, 0x1000, "/bin/a b", at(30)),
        build.mmap(10, 0x500000, 0x1000, "/data", at(31), misc=2 | 1 << 13),
        build.mmap2(10, 0x600000, 0x1000, "/lib/é", at(32), misc=2 | 1 << 14, identity=identity),
        build.mmap2(10, 0x700000, 0x2000, "//anon", at(33), protection=3),
        build.mmap2(
            -1, 0x7FFFFFFF80000000, 9, "[kernel.kallsyms]_text", at(0), misc=1, protection=0
        ),
        build.comm(10, 10, "new name", at(20), misc=2 | 1 << 13),
        build.comm(10, 11, "thread", at(20)),
        build.fork(12, 10, 12, 40, at(40)),
    ]
    source = write(build.file_form([event], b"".join(records)))
    assert list(source.space_events()) == [
        Mmap(-1, -1, 0, 0x7FFFFFFF80000000, 9, 0x1000, "[kernel.kallsyms]_text"),
        Comm(10, 10, 20, "new name", True),
        Comm(10, 11, 20, "thread", False),
        Mmap(10, 10, 30, 0x400000, 0x1000, 0x1000, "/bin/a b"),
        Mmap(10, 10, 31, 0x500000, 0x1000, 0x1000, "/data", executable=False),
        Mmap(10, 10, 32, 0x600000, 0x1000, 0x1000, "/lib/é", "deadbeef"),
        Mmap(10, 10, 33, 0x700000, 0x2000, 0x1000, "//anon", executable=False),
        Fork(12, 10, 12, 40),
        Exit(12, 13, 90),
    ]


@pytest.mark.parametrize("timed", [build.TIME, 0])
def test_without_times_in_all_records_places_in_the_file_order_them(
    write: Write, timed: int
) -> None:
    event = Event(build.IP | build.TID | timed | build.BRANCH_STACK, flags=0)
    if not timed:
        event = Event(event.sample_type, flags=build.SAMPLE_ID_ALL)
    records = [
        build.mmap(1, 0, 1, "first", event.trailer(1, 1, 0)),
        Sample(STACK, time=5).encode(event),
        build.mmap(1, 0, 1, "second", event.trailer(1, 1, 0)),
        Sample(STACK, time=4).encode(event),
    ]
    source = write(build.file_form([event], b"".join(records)))
    first, second = (e.time for e in source.space_events())
    before, after = (row[4] for row in rows(source))
    assert first < before < second < after


def test_events_with_differing_fields_find_their_own_time(write: Write) -> None:
    common = build.IDENTIFIER | build.IP | build.TID | build.TIME | build.BRANCH_STACK
    pair = [Event(common, ids=(1,)), Event(common | build.CPU, ids=(2,))]
    records = b"".join(
        build.comm(1, 1, f"by {i}", event.trailer(1, 1, 50 + i, event.ids[0]))
        for i, event in enumerate(pair)
    )
    assert [e.time for e in write(build.file_form(pair, records)).space_events()] == [50, 51]


def test_records_too_short_for_their_fields_are_counted(write: Write) -> None:
    records = b"".join(build.record(kind, 2, bytes(4)) for kind in (1, 2, 3, 4, 7, 10, 13))
    source = write(build.file_form([Event()], records))
    assert list(source.space_events()) == []
    assert source.health() == {"damaged: records shorter than their fields": 7}


def test_counts_what_the_kernel_lost(write: Write) -> None:
    lost = build.record(2, 0, bytes(8) + (5).to_bytes(8, "little"))
    lost_samples = build.record(13, 0, (3).to_bytes(8, "little"))
    throttle = build.record(5, 0, bytes(24))
    source = write(build.file_form([Event()], lost * 2 + lost_samples + throttle))
    rows(source)
    assert source.health() == {
        "records the kernel lost (full buffer)": 10,
        "samples the kernel lost": 3,
        "times the kernel throttled sampling": 1,
    }


def test_passes_over_every_known_record_and_counts_unknown_ones(write: Write) -> None:
    structured = {9, 2, 5, 13, 66, 71, 81, 83}
    known = [k for k in (*range(1, 23), *range(64, 87)) if k not in structured]
    records = b"".join(build.record(kind, 0, bytes(200)) for kind in (*known, 0, 40, 200, 2**31))
    source = write(build.file_form([Event()], records + Sample(STACK).encode(Event())))
    assert stacks(source) == [STACK]
    assert source.health()["records of unknown types"] == 4
