"""Variables with an address of their own, and entries of types with what is in them.

Source: DWARF 5, 2.5, 4.1, 5.5.3, 5.7.6, 5.13.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from lbr2pgo.program.elf._bytes cimport Cursor, cursor, fixed, uleb
from lbr2pgo.program.dwarf._entries cimport (
    ALL_SLOTS,
    BIT_OFFSET,
    BYTE_SIZE,
    COUNT,
    IN_INFO,
    LOCATION,
    MEMBER_LOCATION,
    NAME,
    ORIGIN,
    SIGNATURE,
    SPECIFICATION,
    TYPE,
    UPPER_BOUND,
    Abbreviation,
    Parts,
    Unit,
    read_attributes,
    skip_values,
    text_of,
)
from lbr2pgo.program.dwarf._forms cimport (
    DW_FORM_ref_sig8,
    DW_FORM_sdata,
    Found,
    Value,
    entry_at,
    is_block,
    is_constant,
)
from lbr2pgo.program.dwarf._units cimport Abbreviations, Sections
from lbr2pgo.program.dwarf._walk cimport (
    Walk,
    ending_of,
    moved_to,
    next_in_tree,
    reference,
    walk_over,
)
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

cdef enum:
    DW_TAG_variable = 0x34

cdef enum:
    DW_OP_addr = 0x03
    DW_OP_plus_uconst = 0x23
    DW_OP_addrx = 0xA1
    DW_OP_GNU_addr_index = 0xFB

cdef enum:
    # Children that are read of one entry; more than any program has members in a type.
    MOST_CHILDREN = 1 << 20

# Where the entry is that one refers to.
cpdef enum:
    NOWHERE = 0
    HERE = 1
    MOVED = 2
    SIGNED = 3


cdef struct Static:
    uint64_t address
    int64_t offset


cdef struct Entry:
    int64_t offset
    int64_t tag
    int64_t name
    int64_t size
    int64_t place
    int64_t count
    int64_t where
    uint64_t type
    int64_t origin


cdef Static _static
cdef Entry _entry
STATIC = np.asarray(<Static[:1]>&_static).dtype
ENTRY = np.asarray(<Entry[:1]>&_entry).dtype


def static_variables(
    Sections sections, const Unit[::1] units, Py_ssize_t index, Abbreviations abbreviations
):
    cdef Walk walk = walk_over(sections, &units[index], abbreviations)
    cdef Growing rows = growing(sizeof(Static))
    try:
        with nogil:
            _walk_variables(&walk, &rows)
        return np.frombuffer(content(&rows), STATIC), ending_of(&walk)
    finally:
        release(&rows)


cdef int _walk_variables(Walk *walk, Growing *rows) except -1 nogil:
    cdef const Abbreviation *declared
    cdef Value[ALL_SLOTS] values
    cdef Found address
    cdef Static *row
    declared = next_in_tree(walk)
    while declared is not NULL:
        if declared.tag == DW_TAG_variable:
            _read_values(walk, declared, values)
            address = _static_address(walk.parts, walk.unit, values[LOCATION])
            if address.is_there and walk.c.at >= 0:
                row = <Static *>add(rows)
                row.address, row.offset = address.number, walk.at
        else:
            skip_values(&walk.c, declared, walk.steps, walk.encoding)
        declared = next_in_tree(walk)
    return 0


cdef void _read_values(Walk *walk, const Abbreviation *declared, Value *values) noexcept nogil:
    """Read all slots of the entry that a walk has come to."""
    read_attributes(walk.parts.abbrev, declared.specs, walk.encoding, &walk.c, values, ALL_SLOTS)


cdef Found _static_address(const Parts *parts, const Unit *unit, Value location) noexcept nogil:
    """The address that a location is for good, if it is one: thread-local data has none."""
    cdef Found found
    cdef Cursor c
    cdef uint64_t operation
    found.is_there, found.number = False, 0
    if not is_block(location.form):
        return found
    c = cursor(parts.info, <int64_t>location.number, location.end)
    operation = fixed(&c, 1)
    if operation == DW_OP_addr:
        found.is_there, found.number = True, fixed(&c, unit.address_size)
    elif operation in (DW_OP_addrx, DW_OP_GNU_addr_index):
        found = entry_at(parts.addr, unit.addr_base, uleb(&c), unit.address_size)
    if c.at != c.end:  # of several that were merged into one
        found.is_there = found.is_there and fixed(&c, 1) == DW_OP_plus_uconst
        found.number += uleb(&c)
    found.is_there = found.is_there and c.at == c.end
    return found


def entry_with_children(
    Sections sections, const Unit[::1] units, Py_ssize_t index, Abbreviations abbreviations,
    int64_t offset,
):
    cdef const Unit *unit = &units[index]
    cdef Walk walk = walk_over(sections, unit, abbreviations)
    cdef Growing rows = growing(sizeof(Entry))
    walk.c = cursor(sections.parts.info, offset if offset >= unit.die else -1, unit.end)
    try:
        with nogil:
            _walk_children(&walk, &rows)
        return np.frombuffer(content(&rows), ENTRY)
    finally:
        release(&rows)


cdef int _walk_children(Walk *walk, Growing *rows) except -1 nogil:
    cdef const Abbreviation *declared
    cdef Value[ALL_SLOTS] values
    declared = next_in_tree(walk)
    while declared is not NULL and rows.count <= MOST_CHILDREN:
        if walk.depth <= 1:
            _read_values(walk, declared, values)
            if walk.c.at >= 0:
                _fill(walk, declared.tag, values, <Entry *>add(rows))
        else:
            skip_values(&walk.c, declared, walk.steps, walk.encoding)
        declared = next_in_tree(walk)
    return 0


cdef void _fill(const Walk *walk, int64_t tag, const Value *values, Entry *row) noexcept nogil:
    cdef int64_t last = _number(values[UPPER_BOUND])
    row.offset, row.tag = walk.at, tag
    row.name = text_of(walk.parts, walk.unit, values[NAME], IN_INFO)
    row.size, row.count = _number(values[BYTE_SIZE]), _number(values[COUNT])
    if row.count < 0 and last >= 0:
        row.count = last + 1
    row.place = _place(walk.parts, values)
    row.origin = reference(walk.parts, walk.unit, values[SPECIFICATION])
    if row.origin < 0:
        row.origin = reference(walk.parts, walk.unit, values[ORIGIN])
    # What only declares a type that has a unit of its own refers to that.
    _refer(walk, values[TYPE if values[TYPE].form != 0 else SIGNATURE], row)


cdef int64_t _number(Value value) noexcept nogil:
    """A constant; -1 where there is none, or none that makes sense."""
    if not is_constant(value.form) and value.form != DW_FORM_sdata:
        return -1
    return <int64_t>value.number if value.number < <uint64_t>1 << 48 else -1


cdef int64_t _place(const Parts *parts, const Value *values) noexcept nogil:
    """Bytes that a member lies behind the start of what it is in; -1 if not known."""
    cdef Value value = values[MEMBER_LOCATION]
    cdef Cursor c
    cdef uint64_t number
    cdef int64_t bits = _number(values[BIT_OFFSET])
    if is_block(value.form):  # before DWARF 3
        c = cursor(parts.info, <int64_t>value.number, value.end)
        number = uleb(&c) if fixed(&c, 1) == DW_OP_plus_uconst else ~<uint64_t>0
        return <int64_t>number if c.at == c.end and number < <uint64_t>1 << 48 else -1
    if value.form != 0:
        return _number(value)
    return bits // 8 if bits >= 0 else -1


cdef void _refer(const Walk *walk, Value value, Entry *row) noexcept nogil:
    """Where the entry of a type is."""
    cdef int64_t here = reference(walk.parts, walk.unit, value), moved = moved_to(value)
    row.where, row.type = NOWHERE, 0
    if value.form == DW_FORM_ref_sig8:
        row.where, row.type = SIGNED, value.number
    elif moved >= 0:
        row.where, row.type = MOVED, <uint64_t>moved
    elif here >= 0:
        row.where, row.type = HERE, <uint64_t>here
