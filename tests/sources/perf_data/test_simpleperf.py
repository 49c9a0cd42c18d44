"""perf.data of Android's simpleperf: perf's form, with records and features of its own.

Written after its sources: record.h, record_file_format.h, and record_file_writer.cpp (WriteRecord
splits records of its own that are longer than 65,535 bytes).
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import STATIC, STATIC_BUILD_ID, STATIC_ENTRY

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.sources.perf_data.reader import PerfData

KERNEL_SYMBOL, SPLIT, SPLIT_END, UNWINDING_RESULT = 32769, 32772, 32773, 32776
BUILD_ID, ARCH, CMDLINE, FILE, META_INFO, FILE2 = 2, 6, 11, 128, 129, 132
META = {
    "simpleperf_version": "1.build.7848450",
    "system_wide_collection": "false",
    "event_type_info": "cpu-cycles:u,0,0\nraw-br-retired:u,4,33",
    "android_version": "14",
    "product_props": "Google:Pixel 8:husky",
}
EVENTS = [
    Event(build.IP | build.TID | build.TIME | build.ID | build.BRANCH_STACK, 9, ids=(1,)),
    Event(
        build.IP | build.TID | build.TIME | build.ID | build.BRANCH_STACK, 9, ids=(2,), type=4,
        config=33,
    ),
]  # fmt: skip


def own(kind: int, content: bytes) -> bytes:
    """A record of simpleperf's: its size's upper half stands where perf has `misc`."""
    size = 8 + len(content)
    return struct.pack("<IHH", kind, size >> 16, size & 0xFFFF) + content


def split(record: bytes, at_most: int = 65_528) -> bytes:
    pieces = [record[i : i + at_most - 8] for i in range(0, len(record), at_most - 8)]
    return b"".join(own(SPLIT, piece) for piece in pieces) + own(SPLIT_END, b"")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    symbols = b"ffffffc010080000 T _text\n" * 9000
    trailer = EVENTS[0].trailer(10, 10, 1, 1)
    # A library inside an APK: simpleperf names it and counts its offset from its own beginning.
    records = split(own(KERNEL_SYMBOL, struct.pack("<I", len(symbols)) + symbols))
    records += build.mmap2(10, 0x202000, 0xA0000, "/data/app/base.apk!/lib/interp.static", trailer)
    for i in range(4):
        event = EVENTS[i % 2]
        stack = (STATIC_ENTRY,) * 2
        records += Sample(stack, pid=10, tid=10, time=9 + i, sample_id=i % 2 + 1).encode(event)
        records += own(UNWINDING_RESULT, bytes(32))
    features = {
        BUILD_ID: build.build_id_record(
            "/data/app/base.apk!/lib/interp.static", bytes.fromhex(STATIC_BUILD_ID)
        ),
        ARCH: build.string("x86_64"),
        CMDLINE: struct.pack("<I", 2) + build.string("simpleperf") + build.string("record"),
        FILE: b"\1\2\3",
        META_INFO: b"".join(f"{key}\0{value}\0".encode() for key, value in META.items()),
        FILE2: bytes(100),
    }
    path = tmp_path / "perf.data"
    path.write_bytes(build.file_form(EVENTS, records, features))
    return path


def test_its_own_records_are_passed_over_and_are_no_damage(recording: Path) -> None:
    source = PerfData(recording)
    assert sum(len(batch) for batch in source.batches()) == 4
    assert source.health() == {}


def test_its_meta_information_names_events_and_the_device(recording: Path) -> None:
    info = PerfData(recording).info
    assert [event.name for event in info.events] == ["cpu-cycles:u", "raw-br-retired:u"]
    assert (info.details["device"], info.details["android"]) == ("Google:Pixel 8:husky", "14")
    assert info.details["simpleperf"] == "1.build.7848450"
    assert info.details["command"] == "simpleperf record"


@pytest.mark.parametrize("damage", [b"odd", b"event_type_info\0cycles,x,y\0", b"a\0b\0c\0"])
def test_meta_information_that_makes_no_sense_is_counted(recording: Path, damage: bytes) -> None:
    whole = recording.read_bytes()
    meta = b"".join(f"{key}\0{value}\0".encode() for key, value in META.items())
    assert meta in whole
    recording.write_bytes(whole.replace(meta, damage.ljust(len(meta), b"\1")))
    source = PerfData(recording)
    assert len(source.info.events) == 2
    assert sum(source.health().values()) <= 1


def test_a_library_in_an_apk_is_found(recording: Path) -> None:
    done = convert(ConvertOptions((recording,), STATIC))
    assert done.counts.branch_total() == 8
    assert not any("by name" in note for note in done.notes)
