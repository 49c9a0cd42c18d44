from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.perf_readings import STACK, Write, ips_of, numbered, stacks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.sources.perf_data import header as perf_header
from lbr2pgo.sources.perf_data import stream as perf_stream
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_data.stream import Extent, extent_at
from lbr2pgo.support.budget import Limit

COMPRESSED2 = 83  # perf: tools/lib/perf/include/perf/event.h


def extent(record: bytes, *, at: int = 8) -> Extent | None:
    """Of a record that stands behind other bytes."""
    return extent_at(np.frombuffer(bytes(at) + record, np.uint8), at)


def record(kind: int, size: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, 0, size) + body


def test_packed_bytes_of_the_old_form_fill_the_record() -> None:
    packed = record(abi.RECORD_COMPRESSED, 20, bytes(12))
    assert extent(packed) == Extent(20, slice(16, 28))
    assert extent(packed[:-1]) is None


def test_those_of_the_new_form_say_their_size_and_are_padded() -> None:
    packed = record(COMPRESSED2, 24, struct.pack("<Q", 5) + bytes(8))
    assert extent(packed) == Extent(24, slice(24, 29))
    assert extent(packed[:-1]) is None


def test_a_record_whose_size_does_not_fit_16_bits_ends_with_its_payload() -> None:
    data = abi.MAX_RECORD_SIZE - 16
    packed = record(COMPRESSED2, 0, struct.pack("<Q", data) + bytes(data))
    assert extent(packed) == Extent(16 + data, slice(24, 24 + data))


def test_the_first_of_several_that_were_written_at_once_is_full() -> None:
    """perf 6.16 gives it the sizes of all: 70,000 bytes here."""
    data = abi.MAX_RECORD_SIZE - 16
    first = record(COMPRESSED2, (70_016) & 0xFFFF, struct.pack("<Q", 70_000) + bytes(data))
    follower = record(COMPRESSED2, 4_480, bytes(8))
    assert extent(first + follower) == Extent(abi.MAX_RECORD_SIZE, slice(24, 24 + data))


@pytest.mark.parametrize(
    ("kind", "word", "size"),
    [
        (abi.RECORD_AUXTRACE, struct.pack("<Q", 1 << 40), 16 + (1 << 40)),
        (abi.RECORD_HEADER_TRACING_DATA, struct.pack("<Q", 0xFFFF_FFFF_0000_0100), 16 + 0x100),
    ],
)
def test_what_follows_a_record_belongs_to_it(kind: int, word: bytes, size: int) -> None:
    assert extent(record(kind, 16, word)) == Extent(size)


@pytest.mark.parametrize(
    "kind",
    [abi.RECORD_COMPRESSED, COMPRESSED2, abi.RECORD_AUXTRACE, abi.RECORD_HEADER_TRACING_DATA],
)
def test_a_header_that_is_cut_off_asks_for_more(kind: int) -> None:
    assert extent(record(kind, 16, bytes(8))[:7]) is None


TRUNCATED = perf_stream.TRUNCATED
NO_RECORDS = perf_stream.NO_RECORDS


def test_chunks_may_end_anywhere(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_stream, "CHUNK", (1 << 18) + 40)
    records, ips = numbered(20_000)
    assert ips_of(write(build.file_form([Event()], b"".join(records)))) == ips


def test_skips_the_data_behind_tracing_and_aux_records(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_stream, "CHUNK", 1 << 18)
    tracing = build.record(66, 0, (4096).to_bytes(4, "little")) + b"\xff" * 4096
    aux = build.record(71, 0, (1 << 20).to_bytes(8, "little") + bytes(32)) + b"\x09\0\0\0" * (
        1 << 18
    )
    sample = Sample(STACK).encode(Event())
    source = write(build.file_form([Event()], sample.join([b"", tracing, aux, b""])))
    assert stacks(source) == [STACK] * 3
    assert not source.health()


def test_reads_records_beyond_four_gibibytes(tmp_path: Path) -> None:
    hole = 5 << 30
    records, ips = numbered(4)
    aux = build.record(71, 0, hole.to_bytes(8, "little") + bytes(32))
    size = sum(map(len, records)) + len(aux) + hole
    head = build.file_form([Event()], b"", data_size=size)
    path = tmp_path / "perf.data"
    with path.open("wb") as file:
        file.write(head + b"".join(records[:2]) + aux)
        file.seek(hole, 1)
        file.write(b"".join(records[2:]))
    source = PerfData(path)
    assert ips_of(source) == ips
    assert not source.health()


@pytest.mark.parametrize("kind", [81, 83])
@pytest.mark.parametrize("payload_size", [1, 13, 500, 60_000])
def test_unpacks_records_that_straddle_compressed_ones(
    write: Write, kind: int, payload_size: int
) -> None:
    records, ips = numbered(40)
    plain = b"".join(records[20:30])
    packer = build.Packer(kind)
    content = packer.pack(b"".join(records[:20]), payload_size)
    content += plain + packer.pack(b"".join(records[30:]), payload_size)
    source = write(build.file_form([Event()], content))
    assert ips_of(source) == ips
    assert not source.health()


def test_compressed_records_may_lie_across_chunks(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_stream, "CHUNK", (1 << 18) + 4)
    records, ips = numbered(40_000)
    packer = build.Packer(level=1)
    pieces = [b"".join(records[i : i + 100]) for i in range(0, len(records), 100)]
    content = b"".join(
        packer.pack(noise(2000 + i, seed=i) + piece) for i, piece in enumerate(pieces)
    )
    assert len(content) > 2 * perf_stream.CHUNK
    assert ips_of(write(build.file_form([Event()], content))) == ips


def test_a_compressed_record_without_a_size_is_damage(write: Write) -> None:
    records, ips = numbered(9)
    broken = build.record(81, 0, bytes(16), size=0)
    source = write(build.file_form([Event()], b"".join([*records[:5], broken, *records[5:]])))
    assert ips_of(source) == ips
    assert source.health() == {NO_RECORDS: len(broken)}


@pytest.mark.parametrize("unit", [b"\0", build.record(99, 0, bytes(8))])
def test_what_unpacks_without_end_is_damage(
    write: Write, monkeypatch: pytest.MonkeyPatch, unit: bytes
) -> None:
    monkeypatch.setattr(perf_stream, "UNPACKED_RECORDS", Limit(1 << 20, 1 << 10))
    packed = build.Packer(level=19).pack(unit * ((64 << 20) // len(unit)))
    assert len(packed) < 8 << 10
    sample = Sample(STACK).encode(Event())
    source = write(build.file_form([Event()], sample + packed + sample))
    assert stacks(source) == [STACK] * 2
    health = source.health()
    assert health[perf_stream.PACKED] == 1
    assert sum(health.values()) < (1 << 20) + (1 << 10) * len(packed)


def test_goes_on_with_the_next_zstd_frame_after_a_broken_one(write: Write) -> None:
    records, ips = numbered(30)
    packer = build.Packer()
    first = packer.pack(b"".join(records[:10]))
    broken = build.record(81, 0, b"\xff" * 100)
    packer.restart()
    second = packer.pack(b"".join(records[10:]))
    source = write(build.file_form([Event()], first + broken + second))
    assert ips_of(source) == ips
    assert source.health()[perf_stream.PACKED] == 1


def test_finds_records_again_after_a_hole_in_the_packed_data(write: Write) -> None:
    records, ips = numbered(30)
    packer = build.Packer()
    first = packer.pack(b"".join(records[:10]) + records[10][:50])
    broken = build.record(81, 0, b"\xff" * 100)
    packer.restart()
    second = packer.pack(records[11][30:] + b"".join(records[12:]))
    source = write(build.file_form([Event()], first + broken + second))
    assert ips_of(source) == ips[:10] + ips[12:]
    lost = len(records[0]) - 30 + 50
    assert source.health() == {perf_stream.PACKED: 1, NO_RECORDS: lost}


def noise(n: int, seed: int = 7) -> bytes:
    """Records that zstd can't make smaller."""
    payload = np.random.default_rng(seed).bytes(n)
    pieces = [payload[i : i + 60_000] for i in range(0, n, 60_000)]
    return b"".join(build.record(14, 0, piece + bytes(-len(piece) % 8)) for piece in pieces)


def test_reads_compressed2_records_whose_size_wrapped_to_zero(write: Write) -> None:
    packer = build.Packer(83)
    payload = packer.payload(noise(65_400) + Sample(STACK).encode(Event()))
    assert 65_513 <= len(payload) <= 65_519
    wrapped = build.record(83, 0, len(payload).to_bytes(8, "little") + payload, size=0)
    last = packer.pack(Sample(STACK).encode(Event()))
    source = write(build.file_form([Event()], wrapped + last))
    assert stacks(source) == [STACK] * 2
    assert not source.health()


def test_reads_compressed2_records_written_as_one_sum(write: Write) -> None:
    packer = build.Packer(83)
    payload = packer.payload(noise(150_000) + Sample(STACK).encode(Event()))
    pieces = [payload[i : i + 65_519] for i in range(0, len(payload), 65_519)]
    total = sum(16 + len(piece) for piece in pieces)
    wrapped = (total + 7) // 8 * 8 & 0xFFFF
    content = build.record(83, 0, (total - 16).to_bytes(8, "little") + pieces[0], size=wrapped)
    for piece in pieces[1:]:
        content += build.record(83, 0, b"\xcc" * 8 + piece)
    source = write(build.file_form([Event()], content + Sample(STACK).encode(Event())))
    assert stacks(source) == [STACK] * 2
    assert not source.health()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_cut_anywhere_gives_its_whole_records(write: Write, data: st.DataObject) -> None:
    records, ips = numbered(6)
    content = build.file_form([Event()], b"".join(records), {3: build.string("host")})
    start = content.index(records[0])
    cut = data.draw(st.integers(start, start + sum(map(len, records))))
    source = write(content[:cut])
    whole = (cut - start) // len(records[0])
    assert ips_of(source) == ips[:whole]
    health = source.health()
    assert health.get(TRUNCATED, 0) == (cut - start) % len(records[0])
    assert health.get(perf_header.MISSING, 0) == start + sum(map(len, records)) - cut
    assert health[perf_header.NO_SECTIONS] == 1


@pytest.mark.parametrize("size", [0, 7])
def test_damage_in_the_middle_loses_only_the_damaged_records(write: Write, size: int) -> None:
    records, ips = numbered(12)
    records[5] = records[5][:6] + size.to_bytes(2, "little") + records[5][8:]
    source = write(build.file_form([Event()], b"".join(records)))
    assert ips_of(source) == ips[:5] + ips[6:]
    assert source.health() == {NO_RECORDS: len(records[5])}


def test_a_record_that_claims_too_much_loses_what_it_covers(write: Write) -> None:
    records, ips = numbered(40)
    records[5] = records[5][:6] + (1000).to_bytes(2, "little") + records[5][8:]
    source = write(build.file_form([Event()], b"".join(records)))
    found = ips_of(source)
    assert found[:6] == ips[:6]
    assert found[-1] == ips[-1]
    assert source.health()


def test_a_hole_of_zeros_larger_than_a_chunk_is_passed(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_stream, "CHUNK", 1 << 19)
    records, ips = numbered(12)
    hole = bytes(1_500_000)
    source = write(build.file_form([Event()], b"".join([*records[:6], hole, *records[6:]])))
    assert ips_of(source) == ips
    assert source.health() == {NO_RECORDS: len(hole)}


def test_a_record_larger_than_the_rest_does_not_hide_those_behind_it(write: Write) -> None:
    records, ips = numbered(12)
    records[10] = records[10][:6] + b"\xff\xff" + records[10][8:]
    source = write(build.file_form([Event()], b"".join(records)))
    assert ips_of(source) == ips[:10] + ips[11:]
    assert sum(source.health().values()) == len(records[10])


@pytest.mark.parametrize("kind", [66, 71])
def test_data_behind_a_record_that_is_not_there(write: Write, kind: int) -> None:
    records, ips = numbered(12)
    lying = build.record(kind, 0, b"\xff" * 8)
    source = write(build.file_form([Event()], b"".join([*records[:6], lying, *records[6:]])))
    assert ips_of(source) == ips
    assert source.health() == {TRUNCATED: len(lying)}
