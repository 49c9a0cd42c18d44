from __future__ import annotations

import struct
import zlib

import pytest
from builders.zstd import zstd
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf.packing import unpack, unpack_gnu

ZLIB, ZSTD = 1, 2
COMPRESS = {ZLIB: zlib.compress, ZSTD: zstd.compress}


def packed(content: bytes, method: int, size: int | None = None) -> memoryview:
    size = len(content) if size is None else size
    return memoryview(struct.pack("<IIQQ", method, 0, size, 1) + COMPRESS[method](content))


def gnu(content: bytes) -> memoryview:
    return memoryview(b"ZLIB" + struct.pack(">Q", len(content)) + zlib.compress(content))


@given(st.binary(max_size=200), st.sampled_from([ZLIB, ZSTD]))
def test_what_was_packed_comes_out(content: bytes, method: int) -> None:
    assert unpack(packed(content, method)) == content
    assert unpack_gnu(gnu(content)) == content


def test_a_section_without_the_old_forms_mark_is_not_packed() -> None:
    assert unpack_gnu(memoryview(b"plain text")) == b"plain text"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (memoryview(bytes(23)), "too short for its compression header"),
        (memoryview(struct.pack("<IIQQ", 3, 0, 4, 1)), r"packed in an unknown way \(3\)"),
        (packed(b"abcd", ZLIB, 5), "unpacks to 4 bytes, not 5"),
        (packed(b"abcd", ZLIB, 3), "unpacks to 4 bytes, not 3"),
        (packed(b"abcd", ZSTD, 5), "unpacks to 4 bytes, not 5"),
        (packed(b"abcd", ZLIB)[:-6], "unpacks to|does not unpack"),
        (packed(b"abcd", ZSTD)[:26], "unpacks to|does not unpack"),
        (memoryview(struct.pack("<IIQQ", ZLIB, 0, 4, 1) + b"nonsense"), "does not unpack"),
        (packed(b"abcd", ZLIB, 1 << 40), "which can't be"),
    ],
)
def test_damage_is_said(view: memoryview, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack(view)
