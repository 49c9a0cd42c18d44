"""Debugging information entries (DIEs): their abbreviations, attributes, addresses and names.

Source: DWARF 5, 2.17 and 7.5; LLVM: DWARFDie.cpp getAddressRanges, DWARFDebugRangeList.cpp,
DWARFDebugRnglists.cpp, also for the tombstones that linkers leave of dropped code.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from lbr2pgo.program.elf._bytes cimport (
    PAST_END,
    UNKNOWN_FORM,
    Bytes,
    Cursor,
    cursor,
    fail,
    fixed,
    skip,
    sleb,
    uleb,
)
from lbr2pgo.program.dwarf._forms cimport (
    DW_FORM_GNU_strp_alt,
    DW_FORM_implicit_const,
    DW_FORM_line_strp,
    DW_FORM_rnglistx,
    DW_FORM_string,
    DW_FORM_strp,
    DW_FORM_strp_sup,
    Encoding,
    Found,
    Value,
    address_of,
    entry_at,
    is_constant,
    is_string_index,
    read_form,
    skip_form,
)
from lbr2pgo.native.growing cimport Growing, add

cdef enum:
    DW_TAG_inlined_subroutine = 0x1D
    DW_TAG_subprogram = 0x2E

cdef enum:
    # No compiler writes so many; a declaration that does is hostile: every DIE would walk them all.
    MAX_ATTRIBUTES = 64

# Attributes that are kept of a DIE. Those before RANGE_SLOTS say where it is, those before
# FUNCTION_SLOTS belong to functions, those before ROOT_SLOTS to root DIEs, the others to data.
cdef enum:
    LOW_PC
    HIGH_PC
    RANGES
    RANGE_SLOTS
    ORIGIN = RANGE_SLOTS
    SPECIFICATION
    MIPS_LINKAGE_NAME
    LINKAGE_NAME
    NAME
    DECL_LINE
    CALL_FILE
    CALL_LINE
    DISCRIMINATOR
    FUNCTION_SLOTS
    ENTRY_PC = FUNCTION_SLOTS
    STMT_LIST
    COMP_DIR
    DWO_NAME
    GNU_DWO_NAME
    GNU_DWO_ID
    STR_OFFSETS_BASE
    ADDR_BASE
    GNU_ADDR_BASE
    RNGLISTS_BASE
    GNU_RANGES_BASE
    ROOT_SLOTS
    LOCATION = ROOT_SLOTS
    TYPE
    SIGNATURE
    BYTE_SIZE
    MEMBER_LOCATION
    BIT_OFFSET
    COUNT
    UPPER_BOUND
    ALL_SLOTS

# Sections that hold strings, see `text_place`.
cdef enum:
    IN_STR
    IN_LINE_STR
    IN_INFO
    IN_LINE
    IN_SUPPLEMENT
    TEXT_SECTIONS


cdef struct Parts:
    # The sections of a file, empty where it has none.
    Bytes info
    Bytes abbrev
    Bytes addr
    Bytes ranges
    Bytes rnglists
    Bytes str_offsets
    Bytes line


cdef struct Unit:
    int64_t offset  # of the header in .debug_info
    int64_t die  # of the root DIE
    int64_t end  # of the next unit
    int64_t abbrev  # of the abbreviations in .debug_abbrev
    int64_t version
    int64_t address_size
    int64_t offset_size
    int64_t is_type  # a type unit
    int64_t type  # the DIE of its type, 0 if it is none
    int64_t has_dwo_id
    uint64_t dwo_id  # of a type unit its signature
    # From the root DIE, whose values start at `root_values` and are declared at `root_specs`.
    int64_t root_specs
    int64_t root_values
    int64_t has_low_pc
    uint64_t low_pc  # base of the unit's range lists
    int64_t lines  # of the line table in .debug_line, -1 if there is none
    int64_t name  # of its source file, a text place
    int64_t comp_dir  # a text place
    int64_t dwo_name  # a text place
    # Where the unit's part of a section starts; -1 where it has none.
    int64_t str_offsets_base
    int64_t addr_base
    int64_t rnglists_base
    int64_t ranges_base
    int64_t gnu_ranges_base  # of its split half
    # Its rows in the tables of abbreviations that were read.
    int64_t first_abbreviation
    int64_t abbreviations


cdef struct Abbreviation:
    uint64_t code
    int64_t tag
    int64_t children
    int64_t has_ranges  # a low pc or a list of ranges
    int64_t specs  # where pairs of attribute and form start in .debug_abbrev
    # Its rows in the table of steps.
    int64_t first_step
    int64_t steps


cdef struct Step:
    # What to do with values of a DIE: of a function's ranges they are kept, all others are passed
    # over, as many as possible at once.
    int64_t size  # VARIABLE if it depends on the value
    uint64_t form
    int64_t slot  # RANGE_SLOTS if the value is passed over
    uint64_t constant  # of an implicit value


cdef struct Range:
    uint64_t low
    uint64_t high
    int64_t owner


cdef struct Ranges:
    Growing rows  # of Range
    # Reading ends when there are more: many hostile DIEs may share one long list.
    int64_t limit


cdef inline Encoding encoding_of(const Unit *unit) noexcept nogil:
    cdef Encoding encoding
    encoding.version, encoding.address_size = unit.version, unit.address_size
    encoding.offset_size = unit.offset_size
    return encoding


cdef inline int64_t slot_of(uint64_t attribute) noexcept nogil:
    """Where an attribute is kept, ALL_SLOTS if it is not."""
    if attribute == 0x11: return LOW_PC
    if attribute == 0x12: return HIGH_PC
    if attribute == 0x55: return RANGES
    if attribute == 0x31: return ORIGIN
    if attribute == 0x47: return SPECIFICATION
    if attribute == 0x2007: return MIPS_LINKAGE_NAME
    if attribute == 0x6E: return LINKAGE_NAME
    if attribute == 0x03: return NAME
    if attribute == 0x3B: return DECL_LINE
    if attribute == 0x58: return CALL_FILE
    if attribute == 0x59: return CALL_LINE
    if attribute == 0x2136: return DISCRIMINATOR
    if attribute == 0x52: return ENTRY_PC
    if attribute == 0x10: return STMT_LIST
    if attribute == 0x1B: return COMP_DIR
    if attribute == 0x76: return DWO_NAME
    if attribute == 0x2130: return GNU_DWO_NAME
    if attribute == 0x2131: return GNU_DWO_ID
    if attribute == 0x72: return STR_OFFSETS_BASE
    if attribute == 0x73: return ADDR_BASE
    if attribute == 0x2133: return GNU_ADDR_BASE
    if attribute == 0x74: return RNGLISTS_BASE
    if attribute == 0x2132: return GNU_RANGES_BASE
    if attribute == 0x02: return LOCATION
    if attribute == 0x49: return TYPE
    if attribute == 0x69: return SIGNATURE
    if attribute == 0x0B: return BYTE_SIZE
    if attribute == 0x38: return MEMBER_LOCATION
    if attribute == 0x6B: return BIT_OFFSET
    if attribute == 0x37: return COUNT
    if attribute == 0x2F: return UPPER_BOUND
    return ALL_SLOTS


cdef inline void read_attributes(
    Bytes abbrev, int64_t specs, Encoding encoding, Cursor *c, Value *values, int64_t slots
) noexcept nogil:
    """Read the values that start at the cursor, and leave it behind them.

    Fills the first `slots` slots; of an attribute that comes twice the first one counts.
    """
    cdef Cursor spec = cursor(abbrev, specs, abbrev.end)
    cdef uint64_t attribute, form
    cdef int64_t slot
    cdef Value value
    memset(values, 0, slots * sizeof(Value))
    for _ in range(MAX_ATTRIBUTES):
        attribute, form = uleb(&spec), uleb(&spec)
        if spec.at < 0 or c.at < 0:
            break
        if attribute == 0 and form == 0:
            return
        value = read_form(c, form, encoding)
        if value.form == DW_FORM_implicit_const:
            value.number = sleb(&spec)
        slot = slot_of(attribute)
        if c.at >= 0 and slot < slots and values[slot].form == 0:
            values[slot] = value
    fail(c, UNKNOWN_FORM)


cdef inline void skip_values(
    Cursor *c, const Abbreviation *declared, const Step *steps, Encoding encoding
) noexcept nogil:
    """Pass over the values of a DIE."""
    cdef int64_t i
    # Steps of a declaration are within the table, as they were when they were made.
    for i in range(declared.first_step, declared.first_step + declared.steps):
        if steps[i].size >= 0:
            skip(c, steps[i].size)
        else:
            skip_form(c, steps[i].form, encoding)


cdef inline void read_ranges(
    Cursor *c, const Abbreviation *declared, const Step *steps, Encoding encoding, Value *values
) noexcept nogil:
    """Read those values of a function that say where it is, RANGE_SLOTS of them; none if cut."""
    cdef int64_t i
    cdef const Step *step
    memset(values, 0, RANGE_SLOTS * sizeof(Value))
    for i in range(declared.first_step, declared.first_step + declared.steps):
        step = &steps[i]
        if step.slot < RANGE_SLOTS and 0 <= step.size <= 8:
            values[step.slot].form = step.form
            values[step.slot].number = fixed(c, step.size) | step.constant
        elif step.slot < RANGE_SLOTS:
            values[step.slot] = read_form(c, step.form, encoding)
        elif step.size >= 0:
            skip(c, step.size)
        else:
            skip_form(c, step.form, encoding)
    if c.at < 0:
        memset(values, 0, RANGE_SLOTS * sizeof(Value))


cdef inline const Abbreviation *find_abbreviation(
    const Abbreviation *table, int64_t count, uint64_t code
) noexcept nogil:
    """The abbreviation of a code, NULL if there is none; the table is sorted by codes."""
    cdef int64_t low = 0, high = count, middle
    if 0 < code <= <uint64_t>count and table[code - 1].code == code:  # as compilers number them
        return &table[code - 1]
    while low < high:
        middle = (low + high) // 2
        if table[middle].code < code:
            low = middle + 1
        else:
            high = middle
    return &table[low] if low < count and table[low].code == code else NULL


cdef inline uint64_t tombstone(int64_t address_size) noexcept nogil:
    """The highest address, with which linkers mark dropped code."""
    return 0xFFFFFFFFULL if address_size == 4 else ~<uint64_t>0


cdef inline int _put(Ranges *ranges, uint64_t low, uint64_t high, int64_t owner) except -1 nogil:
    cdef Range *row = <Range *>add(&ranges.rows)
    row.low, row.high, row.owner = low, high, owner
    return 0


cdef inline int _classic_list(
    const Parts *parts, const Unit *unit, int64_t position, int64_t owner, Ranges *ranges
) except -1 nogil:
    """Put a list of .debug_ranges; nothing of it if it is damaged."""
    cdef Cursor c = cursor(parts.ranges, position, parts.ranges.end)
    cdef uint64_t highest = tombstone(unit.address_size), dropped = highest - 1
    cdef uint64_t base = unit.low_pc if unit.has_low_pc else 0, low, high
    cdef Py_ssize_t start = ranges.rows.count
    while ranges.rows.count <= ranges.limit:
        low, high = fixed(&c, unit.address_size), fixed(&c, unit.address_size)
        if c.at < 0:
            ranges.rows.count = start
            break
        if low == 0 and high == 0:
            break
        if low == highest:
            base = high
        elif low != dropped and base != dropped:
            _put(ranges, low + base, high + base, owner)
    return 0


cdef enum:
    DW_RLE_end_of_list
    DW_RLE_base_addressx
    DW_RLE_startx_endx
    DW_RLE_startx_length
    DW_RLE_offset_pair
    DW_RLE_base_address
    DW_RLE_start_end
    DW_RLE_start_length


cdef struct ListEntry:
    uint64_t kind
    uint64_t low  # or the new base
    uint64_t high


cdef inline uint64_t _pooled(
    const Parts *parts, const Unit *unit, uint64_t index, uint64_t otherwise
) noexcept nogil:
    """An address by its index."""
    cdef Found found = entry_at(parts.addr, unit.addr_base, index, unit.address_size)
    return found.number if found.is_there else otherwise


cdef inline ListEntry _list_entry(
    const Parts *parts, const Unit *unit, Cursor *c, uint64_t base
) noexcept nogil:
    """The range that an entry of .debug_rnglists stands for."""
    cdef ListEntry entry
    entry.kind, entry.low, entry.high = fixed(c, 1), 0, 0
    if entry.kind == DW_RLE_base_addressx:
        entry.low = uleb(c)
        entry.low = _pooled(parts, unit, entry.low, entry.low)
    elif entry.kind == DW_RLE_startx_endx:
        entry.low = _pooled(parts, unit, uleb(c), 0)
        entry.high = _pooled(parts, unit, uleb(c), 0)
    elif entry.kind == DW_RLE_startx_length:
        entry.low = _pooled(parts, unit, uleb(c), 0)
        entry.high = entry.low + uleb(c)
    elif entry.kind == DW_RLE_offset_pair:
        entry.low = base + uleb(c)
        entry.high = base + uleb(c)
    elif entry.kind == DW_RLE_base_address:
        entry.low = fixed(c, unit.address_size)
    elif entry.kind == DW_RLE_start_end:
        entry.low, entry.high = fixed(c, unit.address_size), fixed(c, unit.address_size)
    elif entry.kind == DW_RLE_start_length:
        entry.low = fixed(c, unit.address_size)
        entry.high = entry.low + uleb(c)
    elif entry.kind > DW_RLE_start_length:
        fail(c, PAST_END)
    return entry


cdef inline int _rnglist(
    const Parts *parts, const Unit *unit, int64_t position, int64_t owner, Ranges *ranges
) except -1 nogil:
    """Put a list of .debug_rnglists; nothing of it if it is damaged."""
    cdef Cursor c = cursor(parts.rnglists, position, parts.rnglists.end)
    cdef uint64_t dropped = tombstone(unit.address_size)
    cdef uint64_t base = unit.low_pc if unit.has_low_pc else 0
    cdef Py_ssize_t start = ranges.rows.count
    cdef ListEntry entry
    while ranges.rows.count <= ranges.limit:
        entry = _list_entry(parts, unit, &c, base)
        if c.at < 0:
            ranges.rows.count = start
            break
        if entry.kind == DW_RLE_end_of_list:
            break
        if entry.kind in (DW_RLE_base_address, DW_RLE_base_addressx):
            base = entry.low
        elif entry.low != dropped and not (entry.kind == DW_RLE_offset_pair and base == dropped):
            _put(ranges, entry.low, entry.high, owner)
    return 0


cdef inline int64_t _list_position(const Parts *parts, const Unit *unit, Value value) noexcept nogil:
    """Where a list of ranges starts in its section; behind it or negative if nowhere."""
    cdef int64_t offset = <int64_t>value.number
    cdef bint is_near
    cdef Found found
    if unit.version < 5:
        is_near = 0 <= offset <= parts.ranges.end and unit.ranges_base <= parts.ranges.end
        return offset + unit.ranges_base if is_near else PAST_END
    if value.form != DW_FORM_rnglistx:
        return offset
    found = entry_at(parts.rnglists, unit.rnglists_base, offset, unit.offset_size)
    if not found.is_there or found.number > <uint64_t>parts.rnglists.end:
        return PAST_END
    return unit.rnglists_base + <int64_t>found.number


cdef inline int put_ranges(
    const Parts *parts, const Unit *unit, const Value *values, int64_t owner, Ranges *ranges
) except -1 nogil:
    """Put a DIE's address ranges; a DIE without any, or with damaged ones, puts nothing."""
    cdef Found low = address_of(parts.addr, values[LOW_PC], unit.addr_base, unit.address_size)
    cdef Found high = address_of(parts.addr, values[HIGH_PC], unit.addr_base, unit.address_size)
    if low.is_there and low.number != tombstone(unit.address_size):
        if not high.is_there and is_constant(values[HIGH_PC].form):
            high.is_there, high.number = True, low.number + values[HIGH_PC].number
        if high.is_there:
            return _put(ranges, low.number, high.number, owner)
    if values[RANGES].form == 0:
        return 0
    if unit.version < 5:
        return _classic_list(parts, unit, _list_position(parts, unit, values[RANGES]), owner, ranges)
    return _rnglist(parts, unit, _list_position(parts, unit, values[RANGES]), owner, ranges)


cdef inline int64_t text_place(int64_t section, uint64_t offset) noexcept nogil:
    """One number for a string's section and its offset there, -1 if there can be no such string."""
    return <int64_t>offset * TEXT_SECTIONS + section if offset < <uint64_t>1 << 56 else -1


cdef inline int64_t text_of(
    const Parts *parts, const Unit *unit, Value value, int64_t in_place
) noexcept nogil:
    """Place of the string that a value refers to, -1 if it is none; `in_place` is its own section."""
    cdef Found found
    if value.form == DW_FORM_string:
        return text_place(in_place, value.number)
    if value.form == DW_FORM_strp:
        return text_place(IN_STR, value.number)
    if value.form == DW_FORM_line_strp:
        return text_place(IN_LINE_STR, value.number)
    if value.form in (DW_FORM_GNU_strp_alt, DW_FORM_strp_sup):
        return text_place(IN_SUPPLEMENT, value.number)
    if not is_string_index(value.form):
        return -1
    found = entry_at(parts.str_offsets, unit.str_offsets_base, value.number, unit.offset_size)
    return text_place(IN_STR, found.number) if found.is_there else -1
