"""Packed ELF sections: SHF_COMPRESSED (System V gABI) and the older GNU form."""

from __future__ import annotations

import zlib
from struct import Struct

from lbr2pgo.support import zstd
from lbr2pgo.support.budget import SECTION_BYTES

_HEADER = Struct("<IIQQ")
_ZLIB, _ZSTD = 1, 2
_GNU_MAGIC = b"ZLIB"
_GNU_HEADER_SIZE = 12


def unpack(view: memoryview) -> memoryview:
    """Content of a section with SHF_COMPRESSED; ValueError says what is wrong with it."""
    if len(view) < _HEADER.size:
        raise ValueError("is too short for its compression header")
    method, _, size, _ = _HEADER.unpack_from(view)
    if method not in (_ZLIB, _ZSTD):
        raise ValueError(f"is packed in an unknown way ({method})")
    return _inflate(view[_HEADER.size :], size, method)


def unpack_gnu(view: memoryview) -> memoryview:
    """Content of a ``.zdebug_`` section, as `unpack`.

    That is `ZLIB`, the size as a big-endian u64 and a zlib stream (GNU binutils 2.20); without
    the magic the section is not packed.
    """
    if bytes(view[: len(_GNU_MAGIC)]) != _GNU_MAGIC:
        return view
    size = int.from_bytes(view[len(_GNU_MAGIC) : _GNU_HEADER_SIZE], "big")
    return _inflate(view[_GNU_HEADER_SIZE:], size, _ZLIB)


def _inflate(packed: memoryview, size: int, method: int) -> memoryview:
    if size > SECTION_BYTES.of(len(packed)):
        raise ValueError(f"says it unpacks to {size} bytes, which can't be")
    unpacked = _zlib(packed, size) if method == _ZLIB else _zstd(packed, size)
    if len(unpacked) != size:
        raise ValueError(f"unpacks to {len(unpacked)} bytes, not {size}")
    return memoryview(unpacked)


def _zlib(packed: memoryview, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"does not unpack ({error})") from error


def _zstd(packed: memoryview, size: int) -> bytes:
    try:
        return zstd.unpack(packed, size + 1)
    except ValueError as error:
        raise ValueError(f"does not unpack ({error})") from error
