"""One unit's functions and inlined calls: the tree of their DIEs and their address ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.dwarf_bytes import Int, grown, uleb
from lbr2pgo.native.dwarf_forms import UNKNOWN
from lbr2pgo.native.dwarf_ranges import NO_ROOM, doubled, put_ranges
from lbr2pgo.native.dwarf_units import (
    FUNCTION_SLOTS,
    Sections,
    find_declaration,
    read_attributes,
)
from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.native.rows import row_type

TAG_INLINED_SUBROUTINE, TAG_SUBPROGRAM = 0x1D, 0x2E
# How a walk ended.
COMPLETE, DAMAGED, NO_DECLARATION, TOO_MANY_RANGES, UNKNOWN_FORM = range(5)

DIE = row_type([("offset", np.int64), ("parent", np.int32), ("is_subprogram", np.bool_)])
"""A DIE of a function or of an inlined call.

`parent` is the row of the nearest such DIE around it, -1 if there is none; parents stand before
their children.
"""


@compiled_leaf
def _is_function(tag: Int) -> Any:
    return tag in (TAG_SUBPROGRAM, TAG_INLINED_SUBROUTINE)


@compiled_leaf
def _read_entry(
    sections: Sections, unit: Any, declarations: Any, position: Int, forms: Any, values: Any
) -> Any:
    """Read the entry at `position`: (index of its declaration, -1 for a null entry, behind).

    The position is minus one of the outcomes above where the walk can't go on. Attributes are
    filled for functions with ranges only.
    """
    code, position = uleb(sections.info, position, unit.end)
    if position < 0:
        return -1, -DAMAGED
    if code == 0:
        return -1, position
    index = find_declaration(declarations, code)
    if index < 0:
        return -1, -NO_DECLARATION
    declaration = declarations[index]
    if declaration.length >= 0 and not (declaration.has_ranges and _is_function(declaration.tag)):
        position += declaration.length
    else:
        position = read_attributes(sections, unit, declaration, position, forms, values)
    if position == UNKNOWN:
        return index, -UNKNOWN_FORM
    return index, position if 0 <= position <= unit.end else -DAMAGED


_DIES, _RANGES, _DEPTH = range(3)


@compiled_leaf
def _put_die(dies: Any, used: Any, at: Int, parent: Any, tag: Int) -> None:
    die = dies[used[_DIES]]
    die.offset, die.parent, die.is_subprogram = at, parent, tag == TAG_SUBPROGRAM
    used[_DIES] += 1


@compiled_leaf
def _has_room(dies: Any, ranges: Any, enclosing: Any, used: Any) -> Any:
    return (
        used[_DIES] < len(dies)
        and used[_RANGES] < len(ranges)
        and used[_DEPTH] + 1 < len(enclosing)
    )


@compiled_leaf
def _walk(
    sections: Sections, unit: Any, declarations: Any, position: Int, forms: Any, values: Any,
    dies: Any, ranges: Any, enclosing: Any, used: Any,
) -> Any:  # fmt: skip
    """Walk from `position` on while there is room, at most to the end of the unit's tree.

    Returns the position of the next entry, as `_read_entry` does. `used` counts what is filled of
    `dies` and `ranges`, and the depth, at which `enclosing` says the row around.
    """
    while position < unit.end and _has_room(dies, ranges, enclosing, used):
        at = position
        index, position = _read_entry(sections, unit, declarations, at, forms, values)
        if position < 0:
            return position
        if index < 0:
            used[_DEPTH] -= 1
        elif not _enter(
            sections, unit, declarations[index], at, forms, values, dies, ranges, enclosing, used
        ):  # fmt: skip
            return at
        if used[_DEPTH] <= 0:
            return unit.end
    return position


@compiled_leaf
def _enter(
    sections: Sections, unit: Any, declaration: Any, at: Int, forms: Any, values: Any,
    dies: Any, ranges: Any, enclosing: Any, used: Any,
) -> bool:  # fmt: skip
    """Take the entry at `at`; False if there is no room for its ranges."""
    row = enclosing[used[_DEPTH]]
    if _is_function(declaration.tag):
        if declaration.has_ranges:
            count = put_ranges(
                sections, unit, forms, values, used[_DIES], ranges, used[_RANGES]
            )  # fmt: skip
            if count == NO_ROOM:
                return False
            used[_RANGES] = count
        row, parent = np.int32(used[_DIES]), row
        _put_die(dies, used, at, parent, declaration.tag)
    if declaration.children:
        used[_DEPTH] += 1
        enclosing[used[_DEPTH]] = row
    return True


@compiled
def walk_unit(sections: Sections, unit: Any, declarations: Any, limit: Int) -> Any:
    """Function DIEs of a unit, in order: (rows of `DIE`, ranges, how the walk ended).

    Ranges are rows (low, high, row of the DIE) of (m, 3) u64, in the order of the DIEs; about
    `limit` of them at most. What stands before damage is kept.
    """
    dies, ranges = np.empty(64, DIE), np.empty((64, 3), np.uint64)
    enclosing = np.full(32, -1, np.int32)
    forms, values = np.zeros(FUNCTION_SLOTS, np.int16), np.zeros(FUNCTION_SLOTS, np.uint64)
    used = np.zeros(3, np.int64)
    position = unit.die
    while 0 <= position < unit.end and used[_RANGES] <= limit:
        position = _walk(
            sections, unit, declarations, position, forms, values, dies, ranges, enclosing, used
        )  # fmt: skip
        if used[_DIES] == len(dies):
            dies = grown(dies, used[_DIES])
        elif used[_DEPTH] + 1 == len(enclosing):
            enclosing = grown(enclosing, len(enclosing))
        elif 0 <= position < unit.end:
            ranges = doubled(ranges, used[_RANGES])
    ending = COMPLETE if used[_RANGES] <= limit else TOO_MANY_RANGES
    return dies[: used[_DIES]], ranges[: used[_RANGES]], -position if position < 0 else ending
