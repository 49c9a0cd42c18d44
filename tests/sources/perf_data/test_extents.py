from __future__ import annotations

import struct

import numpy as np
import pytest

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.sources.perf_data.extents import Extent, extent_at

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
