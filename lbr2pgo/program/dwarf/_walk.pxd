"""A walk over the entries (DIEs) of a unit, and where they refer to others."""

from libc.stdint cimport int64_t, uint64_t

from lbr2pgo.program.elf._bytes cimport UNKNOWN_FORM, Cursor, cursor, has, uleb
from lbr2pgo.program.dwarf._entries cimport (
    Abbreviation,
    Parts,
    Step,
    Unit,
    encoding_of,
    find_abbreviation,
)
from lbr2pgo.program.dwarf._forms cimport (
    DW_FORM_GNU_ref_alt,
    DW_FORM_ref1,
    DW_FORM_ref2,
    DW_FORM_ref4,
    DW_FORM_ref8,
    DW_FORM_ref_addr,
    DW_FORM_ref_sup4,
    DW_FORM_ref_sup8,
    DW_FORM_ref_udata,
    Encoding,
    Value,
)
from lbr2pgo.program.dwarf._units cimport (
    COMPLETE,
    DAMAGED,
    NO_DECLARATION,
    ODD_FORM,
    Abbreviations,
    Sections,
)


cdef struct Walk:
    # A walk over the entries of a unit, in the order of the file.
    const Parts *parts
    const Unit *unit
    const Abbreviation *table
    const Step *steps
    Encoding encoding
    Cursor c
    int64_t at  # where the last entry started
    int64_t depth
    bint opens  # the last entry has children, which come next; see `next_in_tree`
    bint is_begun
    int64_t ending


cdef inline const Abbreviation *abbreviations_of(
    const Unit *unit, Abbreviations abbreviations
) except? NULL:
    """A unit's abbreviations."""
    cdef int64_t first = unit.first_abbreviation
    if not 0 <= first <= first + unit.abbreviations <= len(abbreviations):
        raise ValueError("the unit's abbreviations were not loaded")
    return abbreviations.rows() + first


cdef inline Walk walk_over(
    Sections sections, const Unit *unit, Abbreviations abbreviations
) except *:
    """A walk that starts at the root DIE."""
    cdef Walk walk
    walk.parts, walk.unit = &sections.parts, unit
    walk.table = abbreviations_of(unit, abbreviations)
    walk.steps = abbreviations.steps()
    walk.encoding = encoding_of(unit)
    walk.c = cursor(sections.parts.info, unit.die, unit.end)
    walk.at, walk.depth, walk.ending = unit.die, 0, COMPLETE
    walk.opens = walk.is_begun = False
    return walk


cdef inline bint is_over(const Walk *walk) noexcept nogil:
    return walk.c.at < 0 or walk.c.at >= walk.c.end


cdef inline const Abbreviation *next_entry(Walk *walk) noexcept nogil:
    """Read the code of the next entry; NULL for one that ends its siblings, and at damage."""
    cdef const Abbreviation *declared
    cdef uint64_t code
    walk.at = walk.c.at
    code = uleb(&walk.c)
    if code == 0:
        return NULL
    declared = find_abbreviation(walk.table, walk.unit.abbreviations, code)
    if declared is NULL:
        walk.ending, walk.c.at = NO_DECLARATION, walk.c.end
    return declared


cdef inline const Abbreviation *next_in_tree(Walk *walk) noexcept nogil:
    """Read the code of the next entry, which is `depth` deep; NULL behind the tree, and at damage.

    Its values must be read or passed over before the next one is asked for.
    """
    cdef const Abbreviation *declared
    walk.depth += walk.opens
    walk.opens = False
    while not is_over(walk) and (walk.depth > 0 or not walk.is_begun):
        walk.is_begun = True
        declared = next_entry(walk)
        if declared is not NULL:
            walk.opens = declared.children
            return declared
        walk.depth -= 1
    return NULL


cdef inline int64_t ending_of(const Walk *walk) noexcept nogil:
    """How a walk ended that goes no further."""
    cdef Cursor rest = walk.c
    if walk.c.at == UNKNOWN_FORM:
        return ODD_FORM
    while has(&rest, 1):  # behind the tree of a whole unit there is nothing, or zeros
        if uleb(&rest):
            return DAMAGED
    return DAMAGED if walk.c.at < 0 else walk.ending


cdef inline int64_t reference(const Parts *parts, const Unit *unit, Value value) noexcept nogil:
    """Offset in .debug_info that an attribute refers to, -1 if none there."""
    if value.number >= <uint64_t>parts.info.size:
        return -1
    if value.form == DW_FORM_ref_addr:
        return <int64_t>value.number
    if value.form in (
        DW_FORM_ref1, DW_FORM_ref2, DW_FORM_ref4, DW_FORM_ref8, DW_FORM_ref_udata,
    ):
        return unit.offset + <int64_t>value.number
    return -1


cdef inline int64_t moved_to(Value value) noexcept nogil:
    """Offset in the supplementary file's .debug_info that an attribute refers to, -1 if none."""
    cdef bint is_there = value.form in (DW_FORM_GNU_ref_alt, DW_FORM_ref_sup4, DW_FORM_ref_sup8)
    return <int64_t>value.number if is_there and value.number < <uint64_t>1 << 62 else -1
