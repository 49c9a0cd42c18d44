"""The lines of BOLT's pre-aggregated profiles.

    [TR] START END FALLTHROUGH_END COUNT      B START END COUNT MISPREDICTED
    [Ffr] START END COUNT                     S ADDRESS COUNT        E NAME

An address is hexadecimal, with or without `BUILD_ID:` before it (LLVM: bolt/lib/Profile/
DataAggregator.cpp parseAggregatedLBREntry).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import hash_text, line_end, read_decimal, read_hex, skip_blanks, word_end
from lbr2pgo.support.arrays import I64, U8, U64, Text

BRANCH, TRACE, RETURN, RUN, OUTSIDE_RUN, RETURN_RUN, SAMPLE, EVENT = (ord(c) for c in "BTRFfrSE")

FEWEST_BYTES = 6
"""The shortest row is `S 0 1` and a newline."""

MOST_ADDRESSES = 3
_COLON, _HASH = ord(":"), ord("#")
_NO_IMAGE = np.uint64(0)


class Rows(NamedTuple):
    """Rows of a piece of text, n at most."""

    kind: U8
    """(n,): the row's letter."""
    address: U64
    """(n, 3): as they stand in the row; 0 where it has fewer."""
    image: U64
    """(n, 3): hash of the build-id before each address, 0 where there is none."""
    image_place: I64
    """(n, 3, 2): where that build-id stands in the text."""
    amount: U64
    """(n,): the row's count."""
    mispredicted: U64
    """(n,)"""


@compiled_leaf
def _address_count(kind: int) -> int:
    """Addresses in a row of this kind, -1 if there is no such kind."""
    if kind in (TRACE, RETURN):
        return 3
    if kind == SAMPLE:
        return 1
    if kind in (BRANCH, RUN, OUTSIDE_RUN, RETURN_RUN):
        return 2
    return -1


@compiled_leaf
def _read_location(text: Text, place: int, end: int, rows: Rows, row: int, i: int) -> int:
    """Read one address; returns where it started if there is none."""
    after = word_end(text, place, end)
    start = place
    rows.image[row, i] = _NO_IMAGE
    for here in range(place, after):
        if text[here] == _COLON:
            start = here + 1
            if here > place:
                rows.image[row, i] = hash_text(text, place, here)
                rows.image_place[row, i, 0] = place
                rows.image_place[row, i, 1] = here
    value, stop = read_hex(text, start, after)
    rows.address[row, i] = value
    return after if stop == after and stop > start else place


@compiled_leaf
def _read_count(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read a decimal number that is a whole word."""
    value, after = read_decimal(text, place, end)
    return value, (after if after == word_end(text, place, end) else place)


@compiled_leaf
def _read_row(text: Text, place: int, end: int, rows: Rows, row: int) -> bool:
    """Read the row whose letter stands at `place`."""
    kind = text[place]
    addresses = _address_count(kind)
    if addresses < 0 or word_end(text, place, end) != place + 1:
        return False
    here = place + 1
    for i in range(MOST_ADDRESSES):
        rows.address[row, i] = 0
        rows.image[row, i] = _NO_IMAGE
    for i in range(addresses):
        place = skip_blanks(text, here, end)
        here = _read_location(text, place, end, rows, row, i)
        if here == place:
            return False
    place = skip_blanks(text, here, end)
    count, here = _read_count(text, place, end)
    if here == place:
        return False
    mispredicted = np.uint64(0)
    if kind == BRANCH:
        place = skip_blanks(text, here, end)
        mispredicted, here = _read_count(text, place, end)
        if here == place:
            return False
    rows.kind[row] = kind
    rows.amount[row] = count
    rows.mispredicted[row] = mispredicted
    return skip_blanks(text, here, end) == end


@compiled_leaf
def read_rows(text: Text, rows: Rows) -> tuple[int, int]:
    """Read whole lines into rows; how many there are, and how many lines are none.

    Blank lines, comments (`#`) and the names of events are neither.
    """
    found = bad = place = 0
    while place < len(text):
        stop = line_end(text, place, len(text))
        start = skip_blanks(text, place, stop)
        if start < stop and text[start] != _HASH and found < len(rows.kind):
            if _read_row(text, start, stop, rows, found):
                found += 1
            elif text[start] != EVENT or word_end(text, start, stop) != start + 1:
                bad += 1
        place = stop + 1
    return found, bad
