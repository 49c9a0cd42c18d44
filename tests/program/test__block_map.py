"""The loop that reads block maps, against a plain reader."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from lbr2pgo.program._block_map import CUT, FINE, UNKNOWN_VERSION, read_block_map

ENTRY_COUNT, FREQUENCIES, PROBABILITIES, RANGES, OMITTED, CALLS, HASHES, POST_LINK = (
    1 << bit for bit in range(8)
)


def uleb(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def function(version: int, feature: int, chance: random.Random) -> bytes:
    """One function's map."""
    head = bytes([version]) + feature.to_bytes(2 if version >= 5 else 1, "little")
    pieces = chance.randrange(1, 4) if feature & RANGES else 1
    out = (head if version else b"") + (uleb(pieces) if feature & RANGES else b"")
    total = 0
    for _ in range(pieces):
        blocks = chance.randrange(4)
        total += blocks
        out += chance.randrange(1 << 40).to_bytes(8, "little") + uleb(blocks)
        if not feature & OMITTED:
            out += b"".join(block(version, feature, chance) for _ in range(blocks))
    return out + analysis(feature, total, chance)


def block(version: int, feature: int, chance: random.Random) -> bytes:
    out = uleb(chance.randrange(300)) if version >= 2 else b""
    out += uleb(chance.randrange(200))
    if feature & CALLS:
        calls = chance.randrange(3)
        out += uleb(calls) + b"".join(uleb(chance.randrange(20)) for _ in range(calls))
    out += uleb(chance.randrange(300)) + uleb(chance.randrange(32))
    return out + (chance.randbytes(8) if feature & HASHES else b"")


def analysis(feature: int, blocks: int, chance: random.Random) -> bytes:
    out = uleb(chance.randrange(1000)) if feature & ENTRY_COUNT else b""
    for _ in range(blocks):
        if feature & FREQUENCIES:
            out += uleb(chance.randrange(1 << 50)) * (2 if feature & POST_LINK else 1)
        if feature & PROBABILITIES:
            edges = chance.randrange(3)
            numbers = 3 if feature & POST_LINK else 2
            out += uleb(edges) + uleb(chance.randrange(1 << 20)) * (edges * numbers)
    return out


class Plain:
    """Reads the same with whole numbers and lists."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def fixed(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def functions(self, *, has_versions: bool) -> Iterator[list[list[tuple[int, ...]]]]:
        while self.at < len(self.data):
            version = self.fixed(1) if has_versions else 0
            feature = self.fixed(2 if version >= 5 else 1) if has_versions else 0
            pieces = self.number() if feature & RANGES else 1
            ranges = [self.range_(version, feature) for _ in range(pieces)]
            self.passed(feature, sum(count for count, _ in ranges))
            yield [blocks for _, blocks in ranges]

    def range_(self, version: int, feature: int) -> tuple[int, list[tuple[int, ...]]]:
        start, count = self.fixed(8), self.number()
        blocks, end = [], 0
        for index in range(0 if feature & OMITTED else count):
            identity = self.number() if version >= 2 else index
            offset = self.number() + (end if version else 0)
            calls = sum(self.number() for _ in range(self.number() if feature & CALLS else 0))
            size = self.number() + calls
            metadata = self.number()
            digest = self.fixed(8) if feature & HASHES else 0
            end = offset + size
            blocks.append((identity, start + offset, metadata, digest, size))
        return count, blocks

    def passed(self, feature: int, blocks: int) -> None:
        if feature & ENTRY_COUNT:
            self.number()
        for _ in range(blocks):
            for _ in range((2 if feature & POST_LINK else 1) if feature & FREQUENCIES else 0):
                self.number()
            for _ in range(self.number() if feature & PROBABILITIES else 0):
                for _ in range(3 if feature & POST_LINK else 2):
                    self.number()


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize("version", range(6))
def test_every_version_and_feature_is_read_as_a_plain_reader_does(version: int) -> None:
    chance = random.Random(version)
    features = range(0, 256, 1 if version == 5 else 7) if version else (0,)
    data = b"".join(function(version, feature, chance) for feature in features for _ in range(3))
    ranges, blocks, end = read_block_map(as_array(data), version > 0)
    assert end[0] == FINE
    assert end[3] == len(data)
    functions = list(Plain(data).functions(has_versions=version > 0))
    pieces = [(number, piece) for number, parts in enumerate(functions) for piece in parts]
    assert ranges[:, 0].tolist() == [number for number, _ in pieces]
    wanted = [(row, *block) for row, (_, piece) in enumerate(pieces) for block in piece]
    assert list(map(tuple, blocks.tolist())) == wanted


@pytest.mark.parametrize("feature", [0, RANGES | CALLS | HASHES, 255 & ~OMITTED])
def test_a_cut_leaves_whole_functions_and_says_where(feature: int) -> None:
    chance = random.Random(feature)
    parts = [function(5, feature, chance) for _ in range(3)]
    data, start = b"".join(parts), len(parts[0]) + len(parts[1])
    for size in range(start + 1, len(data)):
        ranges, blocks, end = read_block_map(as_array(data[:size]), True)
        assert (end[0], end[3]) == (CUT, start)
        assert ranges[:, 0].max() == 1
        assert len(blocks) <= len(list(Plain(data).functions(has_versions=True))) * 9


def test_an_unknown_version_is_named_and_ends_the_reading() -> None:
    chance = random.Random(1)
    data = function(5, 0, chance) + b"\6\0\0"
    _, _, end = read_block_map(as_array(data), True)
    assert (end[0], end[1], end[3]) == (UNKNOWN_VERSION, 6, len(data) - 3)


def test_any_bytes_are_answered() -> None:
    chance = random.Random(2)
    for _ in range(2000):
        data = bytes([chance.randrange(7)]) + chance.randbytes(chance.randrange(40))
        _, _, end = read_block_map(as_array(data), bool(chance.randrange(2)))
        assert end[3] <= len(data)
    assert read_block_map(as_array(b""), True)[2][0] == FINE
