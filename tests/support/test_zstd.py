from __future__ import annotations

import pytest
from builders.zstd import zstd

from lbr2pgo.support.zstd import StreamUnpacker, unpack

PLAIN = bytes(range(256)) * 40


def test_no_more_is_unpacked_than_is_wanted() -> None:
    packed = zstd.compress(PLAIN)
    assert unpack(packed, len(PLAIN)) == PLAIN
    assert unpack(packed, 100) == PLAIN[:100]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_frames_come_in_pieces_of_any_size(size: int) -> None:
    stream = zstd.compress(PLAIN) + zstd.compress(b"second")
    unpacker = StreamUnpacker()
    pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert b"".join(map(unpacker.unpack, pieces)) == PLAIN + b"second"


@pytest.mark.parametrize("packed", [b"no frame at all", b"\x28\xb5\x2f\xfd" + b"\xff" * 20])
def test_damage_is_an_error(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(packed, 10)
