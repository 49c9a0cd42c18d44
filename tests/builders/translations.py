"""Writes BOLT's address translations as llvm-bolt -enable-bat does, and draws random ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_HASH = 8


@dataclass(frozen=True)
class Entry:
    """Where a block begins, or (without a number) where a branch stands."""

    output: int
    input: int
    block: int | None = None
    hash: int = 0

    @property
    def value(self) -> int:
        return self.input << 1 | (self.block is None)


@dataclass(frozen=True)
class Piece:
    """A function's beginning, or what was split off from the one with the number `parent`."""

    address: int
    entries: Sequence[Entry]
    parent: int | None = None
    hash: int = 0
    blocks: int = 0
    entrances: Sequence[int] = ()


def uleb(value: int) -> bytes:
    out = b""
    value &= (1 << 64) - 1
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def sleb(value: int) -> bytes:
    out = b""
    while True:
        byte, value = value & 127, value >> 7
        if (value, byte & 64) in ((0, 0), (-1, 64)):
            return out + bytes([byte])
        out += bytes([byte | 128])


def note(pieces: Sequence[Piece]) -> bytes:
    """The section: a note whose description is `described`."""
    data = described(pieces)
    return struct.pack("<III", 5, len(data), 1) + b"BOLT\0\0\0\0" + data


def described(pieces: Sequence[Piece]) -> bytes:
    """Those that functions begin with, then those that were split off, each by address."""
    hot = [piece for piece in pieces if piece.parent is None]
    cold = [piece for piece in pieces if piece.parent is not None]
    out, previous = b"", 0
    for group in (hot, cold):
        out += uleb(len(group))
        before = 0
        for piece in group:
            out += uleb(piece.address - previous)
            skew = 0
            if piece.parent is None:
                out += struct.pack("<Q", piece.hash)
                out += uleb(piece.blocks) + uleb(len(piece.entrances))
            else:
                skew = piece.entries[0].input
                out += uleb(piece.parent - before) + uleb(skew)
                before = piece.parent
            written, previous = _entries(piece, skew)
            out += written + _ascending(piece.entrances)
    return out


def _entries(piece: Piece, skew: int) -> tuple[bytes, int]:
    entries = piece.entries
    alike = next((i for i, e in enumerate(entries) if e.output != e.input - skew), len(entries))
    out = uleb(len(entries)) + uleb(alike)
    bits = sum((e.block is None) << i for i, e in enumerate(entries[:alike]))
    out += bits.to_bytes(-(-alike // 8), "little")
    at, value, number = piece.address, 0, 0
    for i, entry in enumerate(entries):
        out += uleb(piece.address + entry.output - at)
        at = piece.address + entry.output
        out += b"" if i < alike else sleb(entry.value - value)
        value = entry.value
        if entry.block is not None:
            out += entry.hash.to_bytes(_HASH, "little") + uleb(entry.block - number)
            number = entry.block
    return out, at


def _ascending(places: Sequence[int]) -> bytes:
    return b"".join(uleb(b - a) for a, b in zip((0, *places), places, strict=False))


def random_pieces(chance: random.Random, hot: int, cold: int, start: int = 0x1000) -> list[Piece]:
    """Pieces whose blocks stand in another order than before; functions' beginnings first."""
    pieces: list[Piece] = []
    parents = sorted(chance.choices(range(hot), k=cold))
    for parent in [*[None] * hot, *parents]:
        start += chance.randrange(1, 1 << chance.randrange(1, 30))
        pieces.append(_random_piece(chance, start, parent))
        start += 1 + max((entry.output for entry in pieces[-1].entries), default=0)
    return pieces


def _random_piece(chance: random.Random, address: int, parent: int | None) -> Piece:
    entries = _random_entries(chance)
    if parent is not None:
        return Piece(address, entries or [Entry(0, 5, 1)], parent)
    entrances = sorted(chance.sample(range(999), chance.randrange(3)))
    return Piece(address, entries, None, chance.getrandbits(64), chance.randrange(300), entrances)


def _random_entries(chance: random.Random) -> list[Entry]:
    entries, output, place = [], 0, chance.choice([0, 0, 40])
    for _ in range(chance.randrange(20)):
        is_branch = chance.random() < 0.4
        block = None if is_branch else chance.randrange(300)
        entries.append(Entry(output, place, block, 0 if is_branch else chance.getrandbits(64)))
        step = chance.choice([0, 1, 5, 9, 400])
        output += step
        place = place + step if chance.random() < 0.7 else chance.randrange(1 << 20)
    return entries
