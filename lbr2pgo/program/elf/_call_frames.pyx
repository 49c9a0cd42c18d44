"""Call frame information: where a function's frame is found by the frame-pointer register."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.program.elf._bytes cimport (
    UNKNOWN_FORM,
    Cursor,
    bytes_of,
    cursor,
    fail,
    fixed,
    skip,
    skip_leb,
    uleb,
)
from lbr2pgo.program.elf._eh_frame cimport Common, Entry, Section, pointer, walk
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

cdef enum:
    C_NOT_MADE
    C_SAVED
    C_MADE
    MOST_REMEMBERED = 16

NOT_MADE, SAVED, MADE = C_NOT_MADE, C_SAVED, C_MADE

# DWARF 5, 7.24; the first three have an operand in their low six bits.
cdef enum:
    DW_CFA_advance_loc = 0x40
    DW_CFA_offset = 0x80
    DW_CFA_restore = 0xC0
    DW_CFA_nop = 0x00
    DW_CFA_set_loc = 0x01
    DW_CFA_advance_loc1 = 0x02
    DW_CFA_advance_loc2 = 0x03
    DW_CFA_advance_loc4 = 0x04
    DW_CFA_offset_extended = 0x05
    DW_CFA_restore_extended = 0x06
    DW_CFA_undefined = 0x07
    DW_CFA_same_value = 0x08
    DW_CFA_register = 0x09
    DW_CFA_remember_state = 0x0A
    DW_CFA_restore_state = 0x0B
    DW_CFA_def_cfa = 0x0C
    DW_CFA_def_cfa_register = 0x0D
    DW_CFA_def_cfa_offset = 0x0E
    DW_CFA_def_cfa_expression = 0x0F
    DW_CFA_expression = 0x10
    DW_CFA_offset_extended_sf = 0x11
    DW_CFA_def_cfa_sf = 0x12
    DW_CFA_def_cfa_offset_sf = 0x13
    DW_CFA_val_offset = 0x14
    DW_CFA_val_offset_sf = 0x15
    DW_CFA_val_expression = 0x16
    DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2C
    DW_CFA_GNU_window_save = 0x2D  # on AArch64: negate_ra_state
    DW_CFA_GNU_args_size = 0x2E
    DW_CFA_GNU_negative_offset_extended = 0x2F
    DW_OP_breg0 = 0x70


cdef struct Rules:
    # What is known of one register; `is_based`: the frame's address is computed from it.
    bint is_based
    bint is_saved


cdef struct Machine:
    Cursor c
    uint64_t register
    uint64_t step
    uint64_t section
    uint8_t pointers
    uint64_t here
    uint64_t there  # where the code is that the instructions read so far are not valid for
    Rules now
    Rules first  # as the common entry leaves them
    Rules remembered[MOST_REMEMBERED]
    Py_ssize_t depth


cdef struct Row:
    uint64_t start
    uint64_t end
    uint64_t state
    uint64_t function


cdef void _save(Machine *m, uint64_t register, bint is_saved) noexcept nogil:
    if register == m.register:
        m.now.is_saved = is_saved


cdef void _skip_block(Machine *m) noexcept nogil:
    skip(&m.c, uleb(&m.c))


cdef void _read_expression(Machine *m) noexcept nogil:
    """An address that begins with the value of a register is based on it."""
    cdef uint64_t size = uleb(&m.c)
    m.now.is_based = size > 0 and m.c.at >= 0 and m.c.at < m.c.end and (
        m.c.data[m.c.at] == DW_OP_breg0 + m.register
    )
    skip(&m.c, size)


cdef void _remember(Machine *m) noexcept nogil:
    if m.depth == MOST_REMEMBERED:
        fail(&m.c, UNKNOWN_FORM)
    else:
        m.remembered[m.depth] = m.now
        m.depth += 1


cdef void _recall(Machine *m) noexcept nogil:
    if m.depth == 0:
        fail(&m.c, UNKNOWN_FORM)
    else:
        m.depth -= 1
        m.now = m.remembered[m.depth]


cdef bint _moves_on(Machine *m, uint8_t code) noexcept nogil:
    """Read an instruction that says where the next ones are valid, if it is one."""
    if code & 0xC0 == DW_CFA_advance_loc:
        m.there = m.here + (code & 0x3F) * m.step
    elif code == DW_CFA_set_loc:
        m.there = pointer(&m.c, m.section, m.pointers)
    elif code == DW_CFA_advance_loc1:
        m.there = m.here + fixed(&m.c, 1) * m.step
    elif code == DW_CFA_advance_loc2:
        m.there = m.here + fixed(&m.c, 2) * m.step
    elif code == DW_CFA_advance_loc4:
        m.there = m.here + fixed(&m.c, 4) * m.step
    else:
        return False
    return True


cdef bint _finds_frame(Machine *m, uint8_t code) noexcept nogil:
    """Read an instruction that says how the frame is found, if it is one."""
    if code in (DW_CFA_def_cfa, DW_CFA_def_cfa_sf):
        m.now.is_based = uleb(&m.c) == m.register
        skip_leb(&m.c)
    elif code == DW_CFA_def_cfa_register:
        m.now.is_based = uleb(&m.c) == m.register
    elif code in (DW_CFA_def_cfa_offset, DW_CFA_def_cfa_offset_sf, DW_CFA_GNU_args_size):
        skip_leb(&m.c)
    elif code == DW_CFA_def_cfa_expression:
        _read_expression(m)
    else:
        return False
    return True


cdef bint _finds_register(Machine *m, uint8_t code) noexcept nogil:
    """Read an instruction that says where a caller's register is, if it is one."""
    if code & 0xC0 == DW_CFA_offset:
        _save(m, code & 0x3F, True)
        skip_leb(&m.c)
    elif code & 0xC0 == DW_CFA_restore:
        _save(m, code & 0x3F, m.first.is_saved)
    elif code in (
        DW_CFA_offset_extended, DW_CFA_offset_extended_sf, DW_CFA_val_offset,
        DW_CFA_val_offset_sf, DW_CFA_register, DW_CFA_GNU_negative_offset_extended,
    ):
        _save(m, uleb(&m.c), True)
        skip_leb(&m.c)
    elif code in (DW_CFA_expression, DW_CFA_val_expression):
        _save(m, uleb(&m.c), True)
        _skip_block(m)
    elif code == DW_CFA_restore_extended:
        _save(m, uleb(&m.c), m.first.is_saved)
    elif code in (DW_CFA_undefined, DW_CFA_same_value):
        _save(m, uleb(&m.c), False)
    else:
        return False
    return True


cdef void _execute(Machine *m) noexcept nogil:
    """Read instructions up to one that moves on, or to the end."""
    cdef uint8_t code
    while 0 <= m.c.at < m.c.end and m.there == m.here:
        code = <uint8_t>fixed(&m.c, 1)
        if _moves_on(m, code) or _finds_frame(m, code) or _finds_register(m, code):
            continue
        if code == DW_CFA_remember_state:
            _remember(m)
        elif code == DW_CFA_restore_state:
            _recall(m)
        elif code not in (
            DW_CFA_nop, DW_CFA_GNU_window_save, DW_CFA_AARCH64_negate_ra_state_with_pc
        ):
            fail(&m.c, UNKNOWN_FORM)


cdef int _add_row(Growing *rows, const Machine *m, uint64_t end, uint64_t function) except -1 nogil:
    cdef uint64_t state = C_MADE if m.now.is_based else C_SAVED if m.now.is_saved else C_NOT_MADE
    cdef Row *last = NULL
    cdef Row row
    if end <= m.here:
        return 0
    if rows.count:
        last = &(<Row *>rows.data)[rows.count - 1]
        if last.function == function and last.end == m.here and last.state == state:
            last.end = end
            return 0
    row.start, row.end, row.state, row.function = m.here, end, state, function
    (<Row *>add(rows))[0] = row
    return 0


cdef Machine _machine(Section section, const Common *common, uint64_t register) noexcept nogil:
    """One that has read the instructions of a common entry."""
    cdef Machine m
    m.register, m.step, m.section, m.pointers = (
        register, common.step, section.address, common.pointers
    )
    m.here = m.there = 0
    m.now.is_based = m.now.is_saved = False
    m.first, m.depth = m.now, 0
    m.c = cursor(section.bytes, common.at, common.end)
    _execute(&m)
    m.first = m.now
    return m


cdef int _read_rows(
    Machine m, Section section, const Entry *entry, Growing *rows
) except -1 nogil:
    cdef uint64_t end = entry.start + entry.size
    m.here = m.there = entry.start
    m.c = cursor(section.bytes, entry.at, entry.end)
    while True:
        _execute(&m)
        if m.c.at < 0 or m.there < m.here:
            return 0
        if m.there == m.here or m.there > end:
            return _add_row(rows, &m, end, entry.start)
        _add_row(rows, &m, m.there, entry.start)
        m.here = m.there


def frame_rows(const uint8_t[::1] data, uint64_t address, bint is_debug, uint64_t register):
    cdef Section section
    cdef Growing commons = growing(sizeof(Common)), entries = growing(sizeof(Entry))
    cdef Growing machines = growing(sizeof(Machine)), rows = growing(sizeof(Row))
    cdef int64_t damaged = 0
    cdef const Entry *entry
    cdef Py_ssize_t i
    section.bytes, section.address, section.is_debug = bytes_of(data), address, is_debug
    try:
        with nogil:
            walk(section, &commons, &entries, &damaged)
            for i in range(commons.count):
                (<Machine *>add(&machines))[0] = _machine(
                    section, &(<const Common *>commons.data)[i], register
                )
            for i in range(entries.count):
                entry = &(<const Entry *>entries.data)[i]
                _read_rows((<const Machine *>machines.data)[entry.common], section, entry, &rows)
        return np.frombuffer(content(&rows), np.uint64).reshape(-1, 4)
    finally:
        release(&commons)
        release(&entries)
        release(&machines)
        release(&rows)
