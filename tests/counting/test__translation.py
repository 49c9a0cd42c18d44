from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.counting._translation import translate
from lbr2pgo.support.arrays import I64, U64

Row = tuple[int, int, int]
"""Start, length and bias of a piece."""

pieces = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 2**64 - 1)))
rows = st.lists(st.tuples(st.integers(-1, 2), st.tuples(st.integers(0, 20), st.integers(0, 20))))


def place(given: list[Row], address: int) -> tuple[int, int]:
    """By the last piece that starts at or below it."""
    below = [i for i, (start, _, _) in enumerate(given) if start <= address]
    if below and address < sum(given[below[-1]][:2]):
        return (address - given[below[-1]][2]) % (1 << 64), below[-1]
    return 0, -1


def tables(spaces: list[list[Row]]) -> tuple[I64, U64]:
    offsets = np.cumsum([0, *map(len, spaces)])
    flat = [(start, start + size, bias) for each in spaces for start, size, bias in each]
    return offsets, np.array(flat, np.uint64).reshape(-1, 3)


@given(st.tuples(pieces, pieces, pieces), rows)
def test_an_address_is_in_the_last_piece_that_begins_before_it(
    given: tuple[list[Row], ...], rows: list[tuple[int, tuple[int, int]]]
) -> None:
    spaces = [sorted(each, key=lambda row: row[0]) for each in given]
    addresses = np.array([pair for _, pair in rows], np.uint64).reshape(-1, 2)
    image, piece = translate(
        np.array([space for space, _ in rows], np.int64), addresses, *tables(spaces)
    )
    expected = [
        [place(spaces[space], address) if space >= 0 else (0, -1) for address in pair]
        for space, pair in rows
    ]
    assert image.tolist() == [[at for at, _ in pair] for pair in expected]
    assert piece.tolist() == [[number for _, number in pair] for pair in expected]


def test_there_are_spaces_for_all_rows() -> None:
    offsets, table = tables([[(0, 5, 0)]])
    with pytest.raises(IndexError):
        translate(np.array([1]), np.zeros((1, 1), np.uint64), offsets, table)
    with pytest.raises(ValueError, match="space"):
        translate(np.array([0]), np.zeros((2, 1), np.uint64), offsets, table)
    with pytest.raises(ValueError, match="three"):
        translate(np.array([0]), np.zeros((1, 1), np.uint64), offsets, table[:, :2].copy())
