"""The records of perf.data as chunks of whole, plain records, whatever they were stored as.

Compressed records are unpacked in their place, data behind a record is skipped, and what is
damaged is counted and passed over. Chunks are bounded, so a file may be larger than memory.

The header of some records does not say all of how far they reach: perf:
tools/lib/perf/include/perf/event.h; tools/perf/builtin-record.c (record__pushfn and
process_comp_header, v6.16).
"""

from __future__ import annotations

import os
import struct
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from typing import BinaryIO

import numpy as np

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.perf_data._perf_records import PARTIAL, SPECIAL, next_plausible, whole_records
from lbr2pgo.support.arrays import Bytes
from lbr2pgo.support.budget import UNPACKED_RECORDS
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.zstd import StreamUnpacker

_HEAD = struct.Struct("<IHHQ")
"""Header and first word of the body."""
_NEEDED = {abi.RECORD_COMPRESSED: 8, abi.RECORD_HEADER_TRACING_DATA: 12}
"""Bytes that tell the extent, where that is less."""
_LONGEST_PAYLOAD2 = abi.MAX_RECORD_SIZE - _HEAD.size
"""perf limits the packed bytes of one COMPRESSED2 record to this."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A record and what belongs to it."""

    size: int
    """Bytes from its header to the next record's."""
    payload: slice | None = None
    """Where the packed bytes of a compressed record lie."""


def extent_at(window: Bytes, at: int) -> Extent | None:
    """Extent of a compressed, AUXTRACE or TRACING_DATA record; None if more bytes are needed.

    Data behind a record need not be in the window, packed bytes must.
    """
    head = window[at : at + _HEAD.size].tobytes()
    kind, _, size, first = _HEAD.unpack(head.ljust(_HEAD.size, b"\0"))
    if len(head) < _NEEDED.get(kind, _HEAD.size):
        return None
    if kind == abi.RECORD_AUXTRACE:
        return Extent(size + first)
    if kind == abi.RECORD_HEADER_TRACING_DATA:
        return Extent(size + (first & 0xFFFFFFFF))
    if kind == abi.RECORD_COMPRESSED:
        extent = Extent(size, slice(at + abi.RECORD_HEADER.size, at + size))
    else:
        extent = _compressed2(window, at, size, first)
    return extent if at + extent.size <= len(window) else None


def _compressed2(window: Bytes, at: int, size: int, data_size: int) -> Extent:
    """Extent of a COMPRESSED2 record: a word with the payload's size, the payload, padding.

    perf 6.16 computes `size`, of 16 bits, from the sum of all records that it wrote at once. A sum
    past 64 KiB leaves the first one's sizes wrong and no padding, and its successors with a
    right `size` and garbage for the payload's. The first one is full then.
    """
    payload = at + _HEAD.size
    if abi.align(_HEAD.size + data_size, 8) == size:
        return Extent(size, slice(payload, payload + data_size))
    wrapped = abi.align(_HEAD.size + data_size, 8) & abi.MAX_RECORD_SIZE == size
    if wrapped and data_size <= _LONGEST_PAYLOAD2:
        return Extent(_HEAD.size + data_size, slice(payload, payload + data_size))
    full = Extent(abi.MAX_RECORD_SIZE, slice(payload, payload + _LONGEST_PAYLOAD2))
    following = at + abi.MAX_RECORD_SIZE
    if wrapped and window[following : following + 4].tobytes() == b"\x53\0\0\0":
        return full
    return Extent(size, slice(payload, at + size))


CHUNK = 1 << 22
_CHAIN = 4 * abi.MAX_RECORD_SIZE
"""Bytes that may be needed to tell whether records begin at a place."""
_SLICE = 1 << 9
"""Packed bytes unpacked at once: zstd makes at most 128 KiB of 4 bytes, so 16 MiB of these."""

TRUNCATED = Doubt("truncated: bytes past the last whole record")
NO_RECORDS = Doubt("damaged: bytes that are no records")
PACKED = Doubt("damaged: compressed records that can't be unpacked")


@dataclass(frozen=True, slots=True)
class Region:
    """Where records lie in a file."""

    file: BinaryIO
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole plain records; valid until the next chunk is asked for."""

    data: Bytes
    position: int
    """Place of the first byte in the stream of plain records."""


@dataclass(slots=True)
class _Lane:
    """A sequence of bytes that records are cut from."""

    may_be_packed: bool
    lost: str | None = None
    """Why the place of the next record is unknown, if it is."""


class RecordStream:
    """One reading of a region; `damage` counts what could not be read, by reason."""

    def __init__(self, region: Region, position: int = 0) -> None:
        self.damage: Counter[str] = Counter()
        self.position = position
        self.used = 0
        """Bytes of the region that records were cut from so far."""
        self._region = region
        self._buffer = np.empty(min(CHUNK, region.end - region.start), np.uint8)
        self._stored = _Lane(may_be_packed=True)
        self._unpacked = _Lane(may_be_packed=False)
        self._unpacker: StreamUnpacker | None = None
        self._packed = self._plain = 0
        self._rest = b""

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the records in their order."""
        at, end = self._region.start, self._region.end
        while at < end:
            window = self._window(at)
            if len(window) < min(CHUNK, end - at):
                end = at + len(window)
            self.used = at + len(window) - self._region.start
            at += yield from self._cut(self._stored, window, end - at)
        if self._rest:
            self.damage[self._unpacked.lost or TRUNCATED] += len(self._rest)

    def _window(self, at: int) -> Bytes:
        """As much of the region from `at` on as the buffer holds."""
        room = self._buffer[: self._region.end - at]
        size = os.preadv(self._region.file.fileno(), [room.data], at)
        return _read_only(room[:size])

    def _cut(self, lane: _Lane, window: Bytes, left: int) -> Generator[Chunk, None, int]:
        """Yield the records of a window; return how far it was used up, or beyond.

        `left` bytes come from the window's first byte on. If they are all in the window, all of
        it is used up; otherwise a record that is not all there is left for the next window.
        """
        at = 0
        while at < len(window):
            if lane.lost:
                at = self._pass_damage(lane, window, at, left)
                if lane.lost:
                    break
            stop, why = whole_records(window, at)
            if stop > at:
                yield self._chunk(window[at:stop])
            if why == SPECIAL and lane.may_be_packed:
                at = yield from self._special(lane, window, stop, left)
            elif why == PARTIAL:
                at = self._partial(lane, window, stop, left)
            else:
                at = self._lose(lane, stop, NO_RECORDS)
            if at == stop:
                break
        return at

    def _special(
        self, lane: _Lane, window: Bytes, at: int, left: int
    ) -> Generator[Chunk, None, int]:
        """Unpack or pass over a record with an extent of its own.

        Returns the place behind it, or `at` if more of it has to be read first.
        """
        extent = extent_at(window, at)
        if extent is None:
            return self._partial(lane, window, at, left)
        if extent.size < abi.RECORD_HEADER.size:
            return self._lose(lane, at, NO_RECORDS)
        if at + extent.size > left:
            return self._lose(lane, at, TRUNCATED)
        if extent.payload is not None:
            yield from self._unpack(window[extent.payload].tobytes())
        return at + extent.size

    def _partial(self, lane: _Lane, window: Bytes, at: int, left: int) -> int:
        """Leave a record for the next window; if there is none, it is cut off."""
        if at == len(window) or len(window) < left:
            return at
        return self._lose(lane, at, TRUNCATED)

    def _unpack(self, payload: bytes) -> Iterator[Chunk]:
        """Yield the records that a compressed one completes; zstd's state goes on with the next."""
        try:
            for start in range(0, len(payload), _SLICE):
                plain = self._decompress(payload[start : start + _SLICE])
                if not plain:
                    continue
                whole = self._rest + plain
                window = np.frombuffer(whole, np.uint8)
                used = yield from self._cut(self._unpacked, window, sys.maxsize)
                self._rest = whole[used:]
        except ValueError:
            self.damage[PACKED] += 1
            self.damage[NO_RECORDS] += len(self._rest)
            self._rest = b""
            self._unpacked.lost = NO_RECORDS
            self._unpacker = None

    def _decompress(self, packed: bytes) -> bytes:
        self._unpacker = self._unpacker or StreamUnpacker()
        plain = self._unpacker.unpack(packed)
        self._packed += len(packed)
        self._plain += len(plain)
        if self._plain > UNPACKED_RECORDS.of(self._packed):
            raise ValueError("becomes more than any recording does")
        return plain

    def _lose(self, lane: _Lane, at: int, reason: str) -> int:
        """Note that there is no whole record at a place; the next byte may begin one."""
        lane.lost = reason
        self.damage[reason] += 1
        return at + 1

    def _pass_damage(self, lane: _Lane, window: Bytes, at: int, left: int) -> int:
        """Where records begin again; `lane.lost` stays set if that is not in this window."""
        assert lane.lost
        found = next_plausible(window, at)
        if found >= 0:
            self.damage[lane.lost] += found - at
            lane.lost = None
            return found
        end = left if left <= len(window) else max(at, len(window) - _CHAIN)
        self.damage[lane.lost] += end - at
        return end

    def _chunk(self, data: Bytes) -> Chunk:
        chunk = Chunk(data, self.position)
        self.position += len(data)
        return chunk


def _read_only(data: Bytes) -> Bytes:
    """A view of the type that arrays over `bytes` have, so that kernels are compiled once."""
    view = data.view()
    view.flags.writeable = False
    return view
