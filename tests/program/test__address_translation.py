"""The loop that reads BOLT's address translations, against what was written."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from builders.translations import Entry, Piece, described, random_pieces, uleb

from lbr2pgo.program._address_translation import CUT, FINE, OUT_OF_RANGE, read_translation

Row = tuple[int, ...]


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def rows(table: np.ndarray) -> list[Row]:
    return list(map(tuple, table.tolist()))


def expected(pieces: Sequence[Piece]) -> tuple[list[Row], list[Row]]:
    """What the tables should hold, by plain steps."""
    heads, entries = [], []
    for number, piece in enumerate(pieces):
        parent = number if piece.parent is None else piece.parent
        heads.append((piece.address, parent))
        entries += [(number, e.output, e.input, e.block is None) for e in piece.entries]
    return heads, entries


@pytest.mark.parametrize("seed", range(30))
def test_what_was_written_is_read(seed: int) -> None:
    chance = random.Random(seed)
    pieces = random_pieces(chance, chance.randrange(1, 9), chance.randrange(9))
    data = described(pieces)
    *tables, end = read_translation(as_array(data))
    assert end == (FINE, len(data))
    assert tuple(map(rows, tables)) == expected(pieces)


def test_nothing_is_no_pieces() -> None:
    *tables, end = read_translation(as_array(described([])))
    assert end == (FINE, 2)
    assert not any(map(len, tables))


def test_every_cut_is_noticed_and_leaves_what_was_read() -> None:
    pieces = random_pieces(random.Random(3), 4, 3)
    data = described(pieces)
    heads, entries = expected(pieces)
    for size in range(len(data)):
        found, there, end = read_translation(as_array(data[:size]))
        assert (end[0], end[1] <= size) == (CUT, True)
        assert [row[0] for row in rows(found)] == [row[0] for row in heads[: len(found)]]
        assert rows(there)[:-1] == entries[: max(len(there) - 1, 0)]


LARGE = 1 << 32


@pytest.mark.parametrize(
    "pieces",
    [
        [Piece(0x1000, [Entry(LARGE, 0, 1)])],
        [Piece(0x1000, [Entry(0, LARGE >> 1, 1)])],
        [Piece(0x1000, [Entry(0, 0, 1)], entrances=(LARGE,))],
        [Piece(0x1000, []), Piece(0x2000, [Entry(0, 1, 1)], parent=1)],
        [Piece(0x1000, []), Piece(0x2000, [Entry(0, LARGE, 1)], parent=0)],
    ],
    ids=["output", "input", "entrance", "parent", "skew"],
)
def test_numbers_that_no_function_can_have_end_the_reading(pieces: list[Piece]) -> None:
    assert read_translation(as_array(described(pieces)))[2][0] == OUT_OF_RANGE


def test_a_number_without_an_end_is_out_of_range() -> None:
    assert read_translation(as_array(b"\xff" * 12))[2][0] == OUT_OF_RANGE


def test_more_blocks_than_bytes_are_a_cut() -> None:
    for alike in (0, 1 << 40, (1 << 64) - 1):
        head = uleb(1) + uleb(0x1000) + bytes(8) + uleb(1) + uleb(0)
        data = head + uleb((1 << 64) - 1) + uleb(alike)
        assert read_translation(as_array(data))[2][0] == CUT


def test_any_bytes_are_answered() -> None:
    chance = random.Random(2)
    whole = described(random_pieces(chance, 5, 4))
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        *_, end = read_translation(as_array(bytes(damaged)))
        assert end[1] <= len(damaged)
