"""One unit's functions and inlined calls: the tree of their DIEs and their address ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.kernels.dwarf_bytes import Int, grown, uleb
from lbr2pgo.kernels.dwarf_forms import UNKNOWN
from lbr2pgo.kernels.dwarf_ranges import append_ranges
from lbr2pgo.kernels.dwarf_units import (
    FUNCTION_SLOTS,
    Sections,
    find_declaration,
    read_attributes,
)
from lbr2pgo.kernels.jit import compiled, compiled_leaf
from lbr2pgo.kernels.rows import row_type

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


@compiled
def walk_unit(sections: Sections, unit: Any, declarations: Any, limit: Int) -> Any:
    """Function DIEs of a unit, in order: (rows of `DIE`, ranges, how the walk ended).

    Ranges are rows (low, high, row of the DIE) of (m, 3) u64, in the order of the DIEs; about
    `limit` of them at most. What stands before damage is kept.
    """
    dies, ranges = np.empty(64, DIE), np.empty((64, 3), np.uint64)
    enclosing = np.full(32, -1, np.int32)
    forms, values = np.zeros(FUNCTION_SLOTS, np.int16), np.zeros(FUNCTION_SLOTS, np.uint64)
    n, m, depth = np.int64(0), np.int64(0), np.int64(0)
    position = unit.die
    while position < unit.end and m <= limit:
        at = position
        index, position = _read_entry(sections, unit, declarations, at, forms, values)
        if position < 0:
            return dies[:n], ranges[:m], -position
        if index >= 0:
            declaration = declarations[index]
            row = enclosing[depth]
            if _is_function(declaration.tag):
                dies = grown(dies, n)
                dies[n].offset, dies[n].parent = at, row
                dies[n].is_subprogram = declaration.tag == TAG_SUBPROGRAM
                if declaration.has_ranges:
                    ranges, m = append_ranges(sections, unit, forms, values, n, ranges, m)
                row = np.int32(n)
                n += 1
            if declaration.children:
                depth += 1
                enclosing = grown(enclosing, depth)
                enclosing[depth] = row
        else:
            depth -= 1
        if depth <= 0:
            break
    return dies[:n], ranges[:m], COMPLETE if m <= limit else TOO_MANY_RANGES
