"""Unit headers of .debug_info, abbreviation declarations, and single DIEs.

Source: DWARF 5, 7.5.1 to 7.5.3; LLVM: DWARFUnit.cpp for what ends a section.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lbr2pgo.native.dwarf_bytes import Int, fixed, initial_length, sleb, uleb
from lbr2pgo.native.dwarf_forms import (
    IMPLICIT_CONST,
    UNKNOWN,
    VARIABLE,
    address_of,
    form_size,
    read_form,
)
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.rows import row_type
from lbr2pgo.support.arrays import Bytes


class Sections(NamedTuple):
    """The sections that the kernels read, as bytes; an absent one is empty."""

    info: Bytes
    abbrev: Bytes
    addr: Bytes
    ranges: Bytes
    rnglists: Bytes


UNIT = row_type(
    [
        ("offset", np.int64),  # of the header in .debug_info
        ("die", np.int64),  # of the root DIE
        ("end", np.int64),  # of the next unit
        ("abbrev", np.int64),  # of the declarations in .debug_abbrev
        ("version", np.int64),
        ("kind", np.int64),  # DW_UT_*, 1 before DWARF 5
        ("address_size", np.int64),
        ("offset_size", np.int64),
        ("dwo_id", np.uint64),
        ("has_dwo_id", np.bool_),
        ("has_low_pc", np.bool_),
        ("low_pc", np.uint64),  # base of the unit's range lists
        ("lines", np.int64),  # of the line table in .debug_line, -1 if there is none
        # Where the unit's part of a section starts; -1 where it has none.
        ("str_offsets_base", np.int64),
        ("addr_base", np.int64),
        ("rnglists_base", np.int64),
        ("ranges_base", np.int64),
    ]
)
"""One unit; what stands below `has_dwo_id` comes from its root DIE."""

DECLARATION = row_type(
    [
        ("code", np.uint64),
        ("tag", np.int64),
        ("children", np.bool_),
        ("has_ranges", np.bool_),  # a low pc or a list of ranges
        ("length", np.int64),  # bytes of all attributes, VARIABLE or UNKNOWN
        ("specs", np.int64),  # where attribute and form pairs start in .debug_abbrev
    ]
)
"""One abbreviation."""

UT_TYPE, UT_SKELETON, UT_SPLIT_COMPILE, UT_SPLIT_TYPE = 2, 4, 5, 6
# No compiler writes so many; a declaration that does is hostile (every DIE would walk them all).
_MAX_ATTRIBUTES = 64

# Attributes that are kept of a DIE: the slot is the index here. Those before `ROOT_SLOTS` belong
# to functions, the others to root DIEs.
ATTRIBUTES = (
    0x11,  # low_pc
    0x12,  # high_pc
    0x55,  # ranges
    0x31,  # abstract_origin
    0x47,  # specification
    0x2007,  # MIPS_linkage_name
    0x6E,  # linkage_name
    0x03,  # name
    0x3B,  # decl_line
    0x58,  # call_file
    0x59,  # call_line
    0x2136,  # GNU_discriminator
    0x52,  # entry_pc
    0x10,  # stmt_list
    0x1B,  # comp_dir
    0x76,  # dwo_name
    0x2130,  # GNU_dwo_name
    0x2131,  # GNU_dwo_id
    0x72,  # str_offsets_base
    0x73,  # addr_base
    0x2133,  # GNU_addr_base
    0x74,  # rnglists_base
    0x2132,  # GNU_ranges_base
)
(LOW_PC, HIGH_PC, RANGES, ORIGIN, SPECIFICATION, MIPS_LINKAGE_NAME, LINKAGE_NAME, NAME, DECL_LINE,
 CALL_FILE, CALL_LINE, DISCRIMINATOR, ENTRY_PC, STMT_LIST, COMP_DIR, DWO_NAME, GNU_DWO_NAME,
 GNU_DWO_ID, STR_OFFSETS_BASE, ADDR_BASE, GNU_ADDR_BASE, RNGLISTS_BASE,
 GNU_RANGES_BASE) = range(len(ATTRIBUTES))  # fmt: skip
FUNCTION_SLOTS = DISCRIMINATOR + 1
ALL_SLOTS = len(ATTRIBUTES)


_AT_LOW_PC, _AT_RANGES = ATTRIBUTES[LOW_PC], ATTRIBUTES[RANGES]


def _slot_table() -> npt.NDArray[np.int8]:
    """(0x2200,) i8: slot of each attribute, -1 where it is not kept."""
    table = np.full(0x2200, -1, np.int8)
    table[list(ATTRIBUTES)] = np.arange(len(ATTRIBUTES))
    return table


_SLOTS = _slot_table()


@compiled_leaf
def _read_header(info: Bytes, position: Int, unit: Any) -> Any:
    """Fill `unit` from the header at `position`; the next unit's position, -1 if damaged."""
    size = len(info)
    length, offset_size, after_length = initial_length(info, position, size)
    version, after_version = fixed(info, after_length, size, 2)
    if length < 0 or after_version < 0 or after_length + length > size:
        return -1
    end = after_length + length
    kind = np.uint64(1)
    if version >= 5:
        kind, at = fixed(info, after_version, end, 1)
        address_size, at = fixed(info, at, end, 1)
        abbrev, at = fixed(info, at, end, offset_size)
    else:
        abbrev, at = fixed(info, after_version, end, offset_size)
        address_size, at = fixed(info, at, end, 1)
    if kind in (UT_TYPE, UT_SPLIT_TYPE):
        at += 8 + offset_size
    unit.dwo_id = np.uint64(0)
    unit.has_dwo_id = kind in (UT_SKELETON, UT_SPLIT_COMPILE)
    if unit.has_dwo_id:
        unit.dwo_id, at = fixed(info, at, end, 8)
    unit.offset, unit.die, unit.end = position, at, end
    unit.abbrev, unit.version, unit.kind = np.int64(abbrev), np.int64(version), np.int64(kind)
    unit.address_size, unit.offset_size = np.int64(address_size), offset_size
    known = 2 <= version <= 5 and (address_size == 4 or address_size == 8)
    return end if 0 <= at <= end and known else -1


@compiled_leaf
def scan_units(info: Bytes, first: Int, units: Any) -> Any:
    """Fill `units` with the headers from position `first` on: (how many, next position).

    Stops at the end of the array, of the section, or at a header that can't be one: then the
    position stays at it.
    """
    count = 0
    position = first
    while position < len(info) and count < len(units):
        behind = _read_header(info, position, units[count])
        if behind <= position:
            break
        count += 1
        position = behind
    return count, position


@compiled_leaf
def _read_specs(abbrev: Bytes, position: Int, unit: Any, row: Any) -> Any:
    """Fill what a declaration's attributes say; the position behind them, or -1."""
    total = 0
    row.has_ranges, row.specs, row.length = False, position, UNKNOWN
    for _ in range(_MAX_ATTRIBUTES):
        attribute, position = uleb(abbrev, position, len(abbrev))
        form, position = uleb(abbrev, position, len(abbrev))
        if position < 0:
            return -1
        if attribute == 0 and form == 0:
            row.length = total
            return position
        row.has_ranges |= attribute in (_AT_LOW_PC, _AT_RANGES)
        if form == IMPLICIT_CONST:
            _, position = uleb(abbrev, position, len(abbrev))
        size = UNKNOWN
        if form <= 0xFFFF:
            size = form_size(np.int64(form), unit.version, unit.address_size, unit.offset_size)
        if size == UNKNOWN or total == UNKNOWN:
            total = UNKNOWN
        elif size == VARIABLE or total == VARIABLE:
            total = VARIABLE
        else:
            total += size
    return -1


@compiled_leaf
def _read_declaration(abbrev: Bytes, position: Int, unit: Any, row: Any) -> Any:
    """Fill `row` with the declaration at `position`; the next one's position, -1 at the end."""
    size = len(abbrev)
    code, position = uleb(abbrev, position, size)
    if position < 0 or code == 0:
        return -1
    tag, position = uleb(abbrev, position, size)
    children, specs = fixed(abbrev, position, size, 1)
    if specs < 0:
        return -1
    row.code, row.children = code, children != 0
    row.tag = np.int64(tag) if tag <= 0xFFFF else 0
    return _read_specs(abbrev, specs, unit, row)


@compiled_leaf
def parse_abbreviations(abbrev: Bytes, unit: Any, declarations: Any) -> Any:
    """Fill `declarations` with a unit's abbreviations; how many there are.

    Ends at the table's end mark, at damage, or when the array is full; it must hold one row more
    than is wanted, for the mark.
    """
    position = unit.abbrev
    count = 0
    while 0 <= position < len(abbrev) and count < len(declarations):
        behind = _read_declaration(abbrev, position, unit, declarations[count])
        if behind < 0:
            break
        position = behind
        count += 1
    return count


@compiled_leaf
def find_declaration(declarations: Any, code: Any) -> Any:
    """Index of an abbreviation code in declarations sorted by code, -1 if it is not there."""
    n = len(declarations)
    if code <= np.uint64(n) and code > 0 and declarations[np.int64(code) - 1].code == code:
        return np.int64(code) - 1
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if declarations[middle].code < code:
            low = middle + 1
        else:
            high = middle
    return low if low < n and declarations[low].code == code else -1


@compiled_leaf
def _keep(attribute: Any, form: Int, value: Any, forms: Any, values: Any) -> None:
    """Store a value in its attribute's slot if it is the first there."""
    if attribute < len(_SLOTS):
        slot = _SLOTS[np.int64(attribute)]
        if 0 <= slot < len(forms) and forms[slot] == 0:
            forms[slot] = form
            values[slot] = value


@compiled_leaf
def read_attributes(
    sections: Sections, unit: Any, declaration: Any, position: Int, forms: Any, values: Any
) -> Any:
    """Attributes of the DIE whose first value is at `position`; the position behind them.

    Fills `forms` (i16; 0 where a slot's attribute is absent) and `values` (u64). -1 where the
    DIE passes its unit's end, `UNKNOWN` where a form is not known.
    """
    forms[:] = 0
    abbrev = sections.abbrev
    specs = declaration.specs
    for _ in range(_MAX_ATTRIBUTES):
        attribute, specs = uleb(abbrev, specs, len(abbrev))
        form_code, specs = uleb(abbrev, specs, len(abbrev))
        if specs < 0 or form_code > 0xFFFF:
            return UNKNOWN
        if attribute == 0 and form_code == 0:
            return position
        form = np.int64(form_code)
        value = np.uint64(0)
        if form == IMPLICIT_CONST:
            value, specs = sleb(abbrev, specs, len(abbrev))
        else:
            form, value, position = read_form(
                sections.info, position, unit.end, form,
                unit.version, unit.address_size, unit.offset_size,
            )  # fmt: skip
        if position < 0:
            return position
        _keep(attribute, form, value, forms, values)
    return UNKNOWN


@compiled_leaf
def read_die(
    sections: Sections, unit: Any, declarations: Any, offset: Int, forms: Any, values: Any
) -> Any:
    """Attributes of the DIE at `offset` of .debug_info: its tag, 0 if there is no such DIE."""
    forms[:] = 0
    if offset < unit.die or offset >= unit.end:
        return 0
    code, position = uleb(sections.info, offset, unit.end)
    index = find_declaration(declarations, code)
    if position < 0 or index < 0:
        return 0
    declaration = declarations[index]
    if read_attributes(sections, unit, declaration, position, forms, values) < 0:
        return 0
    return declaration.tag


@compiled_leaf
def read_dies(
    sections: Sections, unit: Any, declarations: Any, offsets: Any, forms: Any, values: Any
) -> None:
    """`read_die` for each of (n,) offsets, into rows of (n, slots) forms and values."""
    for i in range(len(offsets)):
        read_die(sections, unit, declarations, offsets[i], forms[i], values[i])


@compiled_leaf
def _root_declaration(sections: Sections, unit: Any, row: Any, budget: Int) -> Any:
    """Fill `row` with the root DIE's declaration: (position of its first value, bytes read)."""
    code, values_at = uleb(sections.info, unit.die, unit.end)
    position = unit.abbrev
    while 0 <= position < len(sections.abbrev) and position - unit.abbrev < budget:
        behind = _read_declaration(sections.abbrev, position, unit, row)
        if behind < 0 or row.code == code:
            return (values_at if behind >= 0 else -1), max(behind, position) - unit.abbrev
        position = behind
    return -1, position - unit.abbrev


@compiled_leaf
def _offset_in(form: Any, value: Any, default: Any) -> Any:
    """A section offset that a root DIE gives, or the default."""
    return np.int64(value) if form != 0 and value <= 0x7FFFFFFFFFFFFFFF else default


@compiled_leaf
def _fill_bases(sections: Sections, unit: Any, forms: Any, values: Any) -> None:
    """What a unit's root DIE says of the unit (LLVM: DWARFUnit::tryExtractDIEsIfNeeded)."""
    if forms[GNU_DWO_ID] != 0:
        unit.dwo_id, unit.has_dwo_id = values[GNU_DWO_ID], True
    none, header = np.int64(-1), np.int64(8 if unit.offset_size == 4 else 16)
    strings = header if unit.version >= 5 else np.int64(0)
    unit.lines = _offset_in(forms[STMT_LIST], values[STMT_LIST], none)
    unit.str_offsets_base = _offset_in(forms[STR_OFFSETS_BASE], values[STR_OFFSETS_BASE], strings)
    unit.addr_base = _offset_in(forms[GNU_ADDR_BASE], values[GNU_ADDR_BASE], none)
    unit.addr_base = _offset_in(forms[ADDR_BASE], values[ADDR_BASE], unit.addr_base)
    unit.rnglists_base = _offset_in(forms[RNGLISTS_BASE], values[RNGLISTS_BASE], header + 4)
    slot = LOW_PC if forms[LOW_PC] != 0 else ENTRY_PC
    unit.has_low_pc, unit.low_pc = address_of(
        sections.addr, forms[slot], values[slot], unit.addr_base, unit.address_size
    )


@compiled_leaf
def read_roots(
    sections: Sections, units: Any, scratch: Any, forms: Any, values: Any, budget: Int
) -> None:
    """Fill each unit's fields from its root DIE, and (n, ALL_SLOTS) forms and values of it.

    `scratch` is one row of `DECLARATION`; at most `budget` bytes of abbreviations are searched
    in all.
    """
    for i in range(len(units)):
        unit = units[i]
        forms[i][:] = 0
        position, spent = _root_declaration(sections, unit, scratch[0], budget)
        budget -= spent
        if position >= 0:
            read_attributes(sections, unit, scratch[0], position, forms[i], values[i])
        unit.ranges_base = 0
        _fill_bases(sections, unit, forms[i], values[i])
