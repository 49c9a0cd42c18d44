"""Reads of single numbers from a DWARF section, each checked against its end.

Every reader takes the section as bytes, a position and an end, and returns the value and the
position behind it. A read that would pass the end gives value 0 and position -1; readers take -1
and give it back, so that a chain of reads needs one check at its end. Little-endian only: the
images that get here are (x86-64, AArch64).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.support.arrays import Bytes

Int = int | np.signedinteger[Any]
"""Python's numbers and NumPy's are one type when compiled."""
Number = tuple[Any, Any]
"""A value and the position behind it."""


@compiled_leaf
def fixed(data: Bytes, position: Int, end: Int, size: Int) -> Number:
    """An unsigned number of `size` bytes, at most 8: (u64, next position)."""
    value = np.uint64(0)
    if position < 0 or position > min(end, len(data)) - size:  # a sum might overflow
        return value, -1
    for i in range(size):
        value |= np.uint64(data[position + i]) << np.uint64(8 * i)
    return value, position + size


@compiled_leaf
def uleb(data: Bytes, position: Int, end: Int) -> Number:
    """An unsigned LEB128 number, bits past the 64th dropped: (u64, next position)."""
    value = np.uint64(0)
    if position < 0:
        return value, -1
    shift = 0
    end = min(end, len(data))
    while position < end:
        byte = data[position]
        position += 1
        if shift < 64:
            value |= np.uint64(byte & 0x7F) << np.uint64(shift)
        shift += 7
        if byte < 0x80:
            return value, position
    return np.uint64(0), -1


@compiled_leaf
def sleb(data: Bytes, position: Int, end: Int) -> Number:
    """A signed LEB128 number as two's complement: (u64, next position)."""
    start = position
    value, position = uleb(data, position, end)
    if position < 0:
        return value, -1
    bits = 7 * (position - start)
    if bits < 64 and data[position - 1] & 0x40:
        value |= np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(bits)
    return value, position


@compiled_leaf
def after_string(data: Bytes, position: Int, end: Int) -> Int:
    """Position behind a NUL-terminated string, -1 if it has no end."""
    if position < 0:
        return -1
    end = min(end, len(data))
    while position < end:
        position += 1
        if data[position - 1] == 0:
            return position
    return -1


@compiled_leaf
def initial_length(data: Bytes, position: Int, end: Int) -> tuple[Any, Any, Any]:
    """Unit length and offset size, 4 or 8: (i64, i64, next position).

    Lengths that no section can have are returned as -1 with the position.
    Source: DWARF 5, 7.4.
    """
    size = 4
    value, position = fixed(data, position, end, 4)
    if position >= 0 and value == 0xFFFFFFFF:
        size = 8
        value, position = fixed(data, position, end, 8)
    elif value >= 0xFFFFFFF0:
        return -1, size, position
    if value > np.uint64(len(data)):
        return -1, size, position
    return np.int64(value), size, position


@compiled
def grown(array: Any, used: Int) -> Any:
    """`array`, or a copy with more than twice its rows if all of them are used.

    Callers start their counts as `np.int64(0)`: a plain 0 would be a type of its own here, and
    everything that gets it would be compiled twice.
    """
    if used < len(array):
        return array
    copy = np.empty(2 * used + 16, array.dtype)
    for i in range(used):  # a slice would take seconds to compile
        copy[i] = array[i]
    return copy
