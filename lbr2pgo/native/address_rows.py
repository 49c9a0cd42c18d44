"""Rows of the text that AutoFDO and llvm-profgen exchange: `from-to:count`, `from->to:count`."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import line_end, read_decimal, read_hex, skip_blanks
from lbr2pgo.support.arrays import U64, Text

ADDRESS, RANGE, BRANCH = range(3)
"""Forms of a row: `address:count`, `from-to:count`, `from->to:count`."""

_DASH, _ARROW, _COLON = ord("-"), ord(">"), ord(":")
_NOTHING = np.uint64(0)


@compiled_leaf
def _read_second(text: Text, place: int, end: int, form: int) -> tuple[np.uint64, int]:
    """Read what stands between the first address and the colon; `end` if that is wrong."""
    if form == ADDRESS:
        return _NOTHING, place
    start = place + form
    if start >= end or text[place] != _DASH or (form == BRANCH and text[place + 1] != _ARROW):
        return _NOTHING, end
    value, after = read_hex(text, start, end)
    return value, (after if after > start else end)


@compiled_leaf
def _read_row(text: Text, place: int, end: int, form: int, rows: U64, row: int) -> bool:
    start = skip_blanks(text, place, end)
    first, after = read_hex(text, start, end)
    if after == start:
        return False
    second, colon = _read_second(text, after, end, form)
    if colon >= end or text[colon] != _COLON:
        return False
    count, after = read_decimal(text, colon + 1, end)
    rows[row, 0] = first
    rows[row, 1] = second
    rows[row, 2] = count
    return after > colon + 1 and skip_blanks(text, after, end) == end


@compiled_leaf
def read_rows(text: Text, place: int, form: int, rows: U64) -> tuple[int, int, int]:
    """Read as many lines as `rows`, u64[n, 3], holds, or as the text has, from `place` on.

    Fills from, to, count. Returns where it stopped, how many lines it went over, and how many of
    them are rows of this form, which `rows` starts with.
    """
    lines = found = 0
    while place < len(text) and lines < len(rows):
        stop = line_end(text, place, len(text))
        if _read_row(text, place, stop, form, rows, found):
            found += 1
        lines += 1
        place = stop + 1
    return min(place, len(text)), lines, found
