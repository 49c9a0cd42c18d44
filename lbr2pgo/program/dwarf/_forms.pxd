"""Values of attributes: how long each DW_FORM is, and what the value stands for.

A form that is not known here has no known size, so nothing behind it in its unit can be read:
that is an answer of its own (`UNKNOWN_FORM`), told apart from damage.
Source: DWARF 5, 7.5.6; LLVM: BinaryFormat/Dwarf.def for the vendor forms.
"""

from libc.stdint cimport int64_t, uint64_t

from lbr2pgo.program.elf._bytes cimport (
    PAST_END,
    UNKNOWN_FORM,
    Bytes,
    Cursor,
    cursor,
    fail,
    fixed,
    has,
    skip,
    skip_leb,
    skip_string,
    sleb,
    uleb,
)

cdef enum:
    DW_FORM_addr = 0x01
    DW_FORM_block2 = 0x03
    DW_FORM_block4 = 0x04
    DW_FORM_data2 = 0x05
    DW_FORM_data4 = 0x06
    DW_FORM_data8 = 0x07
    DW_FORM_string = 0x08
    DW_FORM_block = 0x09
    DW_FORM_block1 = 0x0A
    DW_FORM_data1 = 0x0B
    DW_FORM_flag = 0x0C
    DW_FORM_sdata = 0x0D
    DW_FORM_strp = 0x0E
    DW_FORM_udata = 0x0F
    DW_FORM_ref_addr = 0x10
    DW_FORM_ref1 = 0x11
    DW_FORM_ref2 = 0x12
    DW_FORM_ref4 = 0x13
    DW_FORM_ref8 = 0x14
    DW_FORM_ref_udata = 0x15
    DW_FORM_indirect = 0x16
    DW_FORM_sec_offset = 0x17
    DW_FORM_exprloc = 0x18
    DW_FORM_flag_present = 0x19
    DW_FORM_strx = 0x1A
    DW_FORM_addrx = 0x1B
    DW_FORM_ref_sup4 = 0x1C
    DW_FORM_strp_sup = 0x1D
    DW_FORM_data16 = 0x1E
    DW_FORM_line_strp = 0x1F
    DW_FORM_ref_sig8 = 0x20
    DW_FORM_implicit_const = 0x21
    DW_FORM_loclistx = 0x22
    DW_FORM_rnglistx = 0x23
    DW_FORM_ref_sup8 = 0x24
    DW_FORM_strx1 = 0x25
    DW_FORM_strx2 = 0x26
    DW_FORM_strx3 = 0x27
    DW_FORM_strx4 = 0x28
    DW_FORM_addrx1 = 0x29
    DW_FORM_addrx2 = 0x2A
    DW_FORM_addrx3 = 0x2B
    DW_FORM_addrx4 = 0x2C
    DW_FORM_GNU_addr_index = 0x1F01
    DW_FORM_GNU_str_index = 0x1F02
    DW_FORM_GNU_ref_alt = 0x1F20
    DW_FORM_GNU_strp_alt = 0x1F21
    DW_FORM_LLVM_addrx_offset = 0x2001

# What is not the size of a form.
cdef enum:
    VARIABLE = -1
    UNKNOWN = -2


cdef struct Encoding:
    # What sizes of values depend on.
    int64_t version
    int64_t address_size
    int64_t offset_size


cdef struct Value:
    uint64_t form  # 0 where there is no value
    uint64_t number  # of blocks, strings and 16-byte data the position of their content
    int64_t end  # of blocks the position behind it


cdef inline int64_t form_size(uint64_t form, Encoding encoding) noexcept nogil:
    """Bytes that a form takes; VARIABLE or UNKNOWN."""
    if form in (DW_FORM_flag_present, DW_FORM_implicit_const):
        return 0
    if form in (DW_FORM_data1, DW_FORM_flag, DW_FORM_ref1, DW_FORM_strx1, DW_FORM_addrx1):
        return 1
    if form in (DW_FORM_data2, DW_FORM_ref2, DW_FORM_strx2, DW_FORM_addrx2):
        return 2
    if form in (DW_FORM_strx3, DW_FORM_addrx3):
        return 3
    if form in (
        DW_FORM_data4, DW_FORM_ref4, DW_FORM_ref_sup4, DW_FORM_strx4, DW_FORM_addrx4,
    ):
        return 4
    if form in (DW_FORM_data8, DW_FORM_ref8, DW_FORM_ref_sig8, DW_FORM_ref_sup8):
        return 8
    if form == DW_FORM_data16:
        return 16
    if form in (
        DW_FORM_strp, DW_FORM_sec_offset, DW_FORM_strp_sup, DW_FORM_line_strp,
        DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt,
    ):
        return encoding.offset_size
    if form == DW_FORM_addr:
        return encoding.address_size
    if form == DW_FORM_ref_addr:  # an address in DWARF 2
        return encoding.address_size if encoding.version <= 2 else encoding.offset_size
    if is_block(form) or is_leb(form) or form in (DW_FORM_string, DW_FORM_indirect):
        return VARIABLE
    return UNKNOWN


cdef inline bint is_block(uint64_t form) noexcept nogil:
    """Whether a value is a length and so many bytes."""
    return form in (
        DW_FORM_block, DW_FORM_block1, DW_FORM_block2, DW_FORM_block4, DW_FORM_exprloc,
    )


cdef inline bint is_leb(uint64_t form) noexcept nogil:
    """Whether a value starts with a LEB128 number."""
    return form in (
        DW_FORM_sdata, DW_FORM_udata, DW_FORM_ref_udata, DW_FORM_strx, DW_FORM_addrx,
        DW_FORM_loclistx, DW_FORM_rnglistx, DW_FORM_GNU_addr_index, DW_FORM_GNU_str_index,
        DW_FORM_LLVM_addrx_offset,
    )


cdef inline uint64_t block_length(Cursor *c, uint64_t form) noexcept nogil:
    """How many bytes follow in a block."""
    if form == DW_FORM_block1:
        return fixed(c, 1)
    if form == DW_FORM_block2:
        return fixed(c, 2)
    if form == DW_FORM_block4:
        return fixed(c, 4)
    return uleb(c)


cdef inline uint64_t actual_form(Cursor *c, uint64_t form) noexcept nogil:
    """The form of a value that may name it first."""
    while form == DW_FORM_indirect:
        form = uleb(c)
        if c.at < 0:
            return 0
    return form


cdef inline void skip_variable(Cursor *c, uint64_t form) noexcept nogil:
    """Pass over a value of no fixed size that is not indirect."""
    if is_block(form):
        skip(c, block_length(c, form))
    elif form == DW_FORM_string:
        skip_string(c)
    else:
        skip_leb(c)
        if form == DW_FORM_LLVM_addrx_offset:
            skip(c, 4)


cdef inline void skip_form(Cursor *c, uint64_t form, Encoding encoding) noexcept nogil:
    """Pass over a value."""
    form = actual_form(c, form)
    cdef int64_t size = form_size(form, encoding)
    if size == UNKNOWN:
        fail(c, UNKNOWN_FORM)
    elif size == VARIABLE:
        skip_variable(c, form)
    else:
        skip(c, size)


cdef inline Value read_form(Cursor *c, uint64_t form, Encoding encoding) noexcept nogil:
    """One value, with its actual form."""
    cdef Value value
    value.form = actual_form(c, form)
    value.number = value.end = 0
    cdef int64_t size = form_size(value.form, encoding)
    if 0 <= size <= 8:
        value.number = fixed(c, size)
    elif value.form == DW_FORM_sdata:
        value.number = sleb(c)
    elif value.form == DW_FORM_LLVM_addrx_offset:
        value.number = uleb(c) << 32
        value.number |= fixed(c, 4)
    elif is_leb(value.form):
        value.number = uleb(c)
    elif is_block(value.form):
        size = <int64_t>block_length(c, value.form)
        value.number = c.at
        skip(c, size)
        value.end = c.at
    else:
        value.number = c.at
        skip_form(c, value.form, encoding)
    return value


cdef inline bint is_address_index(uint64_t form) noexcept nogil:
    """Whether a value is an index into .debug_addr."""
    return (
        form in (DW_FORM_addrx, DW_FORM_GNU_addr_index) or DW_FORM_addrx1 <= form <= DW_FORM_addrx4
    )


cdef inline bint is_string_index(uint64_t form) noexcept nogil:
    """Whether a value is an index into .debug_str_offsets."""
    return form in (DW_FORM_strx, DW_FORM_GNU_str_index) or DW_FORM_strx1 <= form <= DW_FORM_strx4


cdef inline bint is_constant(uint64_t form) noexcept nogil:
    """Whether LLVM takes the value as an unsigned constant (LLVM: DWARFFormValue.cpp)."""
    return form in (
        DW_FORM_data1, DW_FORM_data2, DW_FORM_data4, DW_FORM_data8, DW_FORM_udata,
        DW_FORM_implicit_const, DW_FORM_flag, DW_FORM_flag_present,
    )


cdef struct Found:
    bint is_there
    uint64_t number


cdef inline Found entry_at(Bytes table, int64_t base, uint64_t index, int64_t size) noexcept nogil:
    """An entry of `size` bytes in a table of a section; not there if the section ends before."""
    cdef Found found
    cdef Cursor c
    found.is_there, found.number = False, 0
    if 0 <= base <= table.end and index <= <uint64_t>table.end:
        c = cursor(table, base + <int64_t>index * size, table.end)
        found.number = fixed(&c, size)
        found.is_there = c.at >= 0
    return found


cdef inline Found address_of(
    Bytes addr, Value value, int64_t base, int64_t address_size
) noexcept nogil:
    """The address that a value gives, in .debug_addr if it is an index; none if it is neither."""
    cdef Found found
    found.is_there, found.number = value.form == DW_FORM_addr, value.number
    if value.form == DW_FORM_LLVM_addrx_offset:
        found = entry_at(addr, base, value.number >> 32, address_size)
        found.number += value.number & 0xFFFFFFFFULL
    elif is_address_index(value.form):
        found = entry_at(addr, base, value.number, address_size)
    elif not found.is_there:
        found.number = 0
    return found
