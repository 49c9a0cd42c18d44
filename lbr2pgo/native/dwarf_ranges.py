"""Address ranges of a DIE: low and high pc, range lists of DWARF 2 to 4 and of DWARF 5.

Source: DWARF 5, 2.17; LLVM: DWARFDie.cpp getAddressRanges, DWARFDebugRangeList.cpp,
DWARFDebugRnglists.cpp, also for the tombstones that linkers leave of dropped code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.dwarf_bytes import Int, fixed, uleb
from lbr2pgo.native.dwarf_forms import (
    ADDR,
    RNGLISTX,
    address_of,
    is_address_index,
    is_constant,
    pooled_address,
)
from lbr2pgo.native.dwarf_units import HIGH_PC, LOW_PC, RANGES, Sections
from lbr2pgo.native.jit import compiled, compiled_leaf

# DW_RLE_*
_END, _BASEX, _STARTX_ENDX, _STARTX_LENGTH, _OFFSETS, _BASE, _START_END, _START_LENGTH = range(8)


@compiled_leaf
def tombstone(address_size: Int) -> Any:
    """The highest address, with which linkers mark dropped code."""
    return np.uint64(0xFFFFFFFF) if address_size == 4 else np.uint64(0xFFFFFFFFFFFFFFFF)


NO_ROOM = -1


@compiled
def doubled(ranges: Any, used: Int) -> Any:
    """A copy of the `used` first rows with more than twice the room."""
    more = np.empty((2 * len(ranges) + 16, 3), np.uint64)
    for i in range(used):
        for j in range(3):
            more[i, j] = ranges[i, j]
    return more


@compiled_leaf
def _put(ranges: Any, count: Int, low: Any, high: Any, owner: Int) -> Int:
    """Set row `count`; the new count, or NO_ROOM."""
    if count == len(ranges):
        return NO_ROOM
    ranges[count, 0], ranges[count, 1], ranges[count, 2] = low, high, np.uint64(owner)
    return count + 1


@compiled_leaf
def _classic_list(
    sections: Sections, unit: Any, position: Int, owner: Int, ranges: Any, count: Int
) -> Int:
    """Put a list of .debug_ranges; the new count, or NO_ROOM."""
    data, size = sections.ranges, unit.address_size
    highest = tombstone(size)
    dropped = highest - np.uint64(1)
    base = unit.low_pc if unit.has_low_pc else np.uint64(0)
    start = count
    while count != NO_ROOM:
        low, position = fixed(data, position, len(data), size)
        high, position = fixed(data, position, len(data), size)
        if position < 0:
            return start
        if low == 0 and high == 0:
            return count
        if low == highest:
            base = high
        elif low != dropped and base != dropped:
            count = _put(ranges, count, low + base, high + base, owner)
    return NO_ROOM


@compiled_leaf
def _entry(sections: Sections, unit: Any, kind: Any, position: Int) -> Any:
    """Operands of a DWARF 5 entry, looked up where they are indices: (u64, u64, position)."""
    data, size = sections.rnglists, unit.address_size
    first, second = np.uint64(0), np.uint64(0)
    if kind >= _BASE:
        first, position = fixed(data, position, len(data), size)
    else:
        first, position = uleb(data, position, len(data))
        if kind != _OFFSETS:
            found, address = pooled_address(sections.addr, first, unit.addr_base, size)
            first = address if found or kind != _BASEX else first
    if kind == _START_END:
        second, position = fixed(data, position, len(data), size)
    elif kind != _BASE and kind != _BASEX:
        second, position = uleb(data, position, len(data))
    if kind == _STARTX_ENDX:
        _, second = pooled_address(sections.addr, second, unit.addr_base, size)
    return first, second, position


@compiled_leaf
def _bounds(kind: Any, base: Any, first: Any, second: Any) -> Any:
    """The range that an entry's operands stand for."""
    if kind == _OFFSETS:
        return first + base, second + base
    if kind in (_START_LENGTH, _STARTX_LENGTH):
        return first, first + second
    return first, second


@compiled_leaf
def _rnglist(
    sections: Sections, unit: Any, position: Int, owner: Int, ranges: Any, count: Int
) -> Int:
    """Put a list of .debug_rnglists; the new count, or NO_ROOM."""
    data = sections.rnglists
    dropped = tombstone(unit.address_size)
    base = unit.low_pc if unit.has_low_pc else np.uint64(0)
    start = count
    while count != NO_ROOM:
        kind, position = fixed(data, position, len(data), 1)
        if position < 0 or kind > _START_LENGTH:
            return start
        if kind == _END:
            return count
        low, high, position = _entry(sections, unit, kind, position)
        if position < 0:
            return start
        if kind in (_BASE, _BASEX):
            base = low
            continue
        is_dead = low == dropped or (kind == _OFFSETS and base == dropped)
        low, high = _bounds(kind, base, low, high)
        if not is_dead and low != dropped:
            count = _put(ranges, count, low, high, owner)
    return NO_ROOM


@compiled_leaf
def _list_position(sections: Sections, unit: Any, form: Int, value: Any) -> Any:
    """Where a DIE's range list starts in its section, -1 if nowhere."""
    if value > 0x7FFFFFFF_FFFFFFFF:
        return -1
    offset = np.int64(value)
    if unit.version < 5:
        return offset + unit.ranges_base
    if form != RNGLISTX:
        return offset
    base, size = unit.rnglists_base, unit.offset_size
    if offset > len(sections.rnglists):
        return -1
    data = sections.rnglists
    relative, behind = fixed(data, base + offset * size, len(data), size)
    if behind < 0 or relative > np.uint64(len(data)):
        return -1
    return base + np.int64(relative)


@compiled_leaf
def _single_range(sections: Sections, unit: Any, forms: Any, values: Any) -> Any:
    """The range that low and high pc of a DIE give: (whether they do, u64, u64)."""
    found, low = address_of(
        sections.addr, forms[LOW_PC], values[LOW_PC], unit.addr_base, unit.address_size
    )
    form, high = forms[HIGH_PC], values[HIGH_PC]
    if not found or low == tombstone(unit.address_size):
        return False, low, high
    if form == ADDR or is_address_index(form):
        found, high = address_of(sections.addr, form, high, unit.addr_base, unit.address_size)
        return found, low, high
    return is_constant(form), low, low + high


@compiled_leaf
def put_ranges(
    sections: Sections, unit: Any, forms: Any, values: Any, owner: Int, ranges: Any, count: Int
) -> Int:
    """Put a DIE's ranges as rows (low, high, owner) of (m, 3) u64: the new count, or NO_ROOM.

    A DIE without ranges, or with damaged ones, puts nothing.
    """
    found, low, high = _single_range(sections, unit, forms, values)
    if found:
        return _put(ranges, count, low, high, owner)
    if forms[RANGES] == 0:
        return count
    position = _list_position(sections, unit, forms[RANGES], values[RANGES])
    if unit.version < 5:
        return _classic_list(sections, unit, position, owner, ranges, count)
    return _rnglist(sections, unit, position, owner, ranges, count)


@compiled
def unit_ranges(
    sections: Sections, units: Any, wanted: Any, forms: Any, values: Any, limit: Int
) -> tuple[Any, bool]:
    """Ranges of the root DIEs of the wanted units: ((m, 3) u64, whether all of them).

    The third column is the unit's index. No more than about `limit` rows are made, because many
    hostile DIEs may share one long list.
    """
    ranges = np.empty((16, 3), np.uint64)
    count: Any = np.int64(0)
    i = 0
    while i < len(units):
        if wanted[i]:
            new = put_ranges(sections, units[i], forms[i], values[i], i, ranges, count)
            if new == NO_ROOM:
                ranges = doubled(ranges, count)
                continue
            count = new
        if count > limit:
            return ranges[:count], False
        i += 1
    return ranges[:count], True
