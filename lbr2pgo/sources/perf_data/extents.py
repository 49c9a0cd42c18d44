"""How far a record of perf.data reaches whose header does not say it all.

Sources: perf: tools/lib/perf/include/perf/event.h; tools/perf/builtin-record.c
(record__pushfn and process_comp_header, v6.16).
"""

from __future__ import annotations

import struct

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.support.arrays import Bytes
from lbr2pgo.support.dataclass import dataclass

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
