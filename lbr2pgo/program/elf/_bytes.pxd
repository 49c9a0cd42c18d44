"""Reads of single numbers from a DWARF section, each checked against its end.

A cursor that would pass its end stops there for good: `at` is negative from then on, and what is
read is 0. So a chain of reads needs one check, behind the last. Little-endian only, as are the
images that get here (x86-64, AArch64).
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memchr

# Where a cursor is that has failed.
cdef enum:
    PAST_END = -1
    UNKNOWN_FORM = -2  # the size of a value is not known, so nothing behind it can be read


cdef struct Bytes:
    # A section, or the part of one that is in memory; bare, so that it can be handed about without
    # counting references. All reads are through cursors.
    const uint8_t *origin  # where position 0 would be
    int64_t start  # of what is in memory
    int64_t end
    int64_t size  # of the section


cdef struct Cursor:
    const uint8_t *data  # position 0
    int64_t at  # in the section
    int64_t end  # never behind what is in memory


cdef inline Bytes bytes_of(const uint8_t[::1] section) noexcept nogil:
    """A whole section; valid as long as its owner is."""
    return part_of(section, 0, section.shape[0])


cdef inline Bytes part_of(const uint8_t[::1] part, int64_t start, int64_t size) noexcept nogil:
    """A part of a section of `size` bytes; valid as long as the part's owner is."""
    cdef Bytes section
    cdef const uint8_t *data = NULL
    if part.shape[0]:
        with cython.boundscheck(False):
            data = &part[0]
    # Not a pointer's arithmetic: there may be nothing at the origin.
    section.origin = <const uint8_t *>(<uintptr_t>data - <uintptr_t>start)
    section.start, section.end, section.size = start, start + part.shape[0], size
    return section


cdef inline Cursor cursor(Bytes section, int64_t at, int64_t end) noexcept nogil:
    """A cursor at a position; one where nothing is in memory, or behind `end`, has failed already."""
    cdef Cursor c
    c.data = section.origin
    c.end = end if end < section.end else section.end
    c.at = at if section.start <= at <= c.end else PAST_END
    return c


cdef inline bint has(const Cursor *c, uint64_t size) noexcept nogil:
    """Whether so many bytes are left; never after a failure."""
    return c.at >= 0 and size <= <uint64_t>(c.end - c.at)


cdef inline void fail(Cursor *c, int64_t how) noexcept nogil:
    """Stop for good; the first failure counts."""
    if c.at >= 0:
        c.at = how


cdef inline void skip(Cursor *c, uint64_t size) noexcept nogil:
    """Pass over so many bytes."""
    if has(c, size):
        c.at += <int64_t>size
    else:
        fail(c, PAST_END)


cdef inline uint64_t little(const uint8_t *data, int64_t size) noexcept nogil:
    """The number that bytes are; for a constant size one load when compiled."""
    cdef uint64_t value = 0
    cdef int64_t i
    for i in range(size):
        value |= <uint64_t>data[i] << (8 * i)
    return value


cdef inline uint64_t fixed(Cursor *c, int64_t size) noexcept nogil:
    """An unsigned number of `size` bytes, at most 8."""
    cdef const uint8_t *data
    if not has(c, size):
        fail(c, PAST_END)
        return 0
    data = c.data + c.at
    c.at += size
    if size == 1:
        return data[0]
    if size == 4:
        return little(data, 4)
    return little(data, 8) if size == 8 else little(data, size)


cdef inline uint64_t uleb(Cursor *c) noexcept nogil:
    """An unsigned LEB128 number, bits past the 64th dropped."""
    cdef uint64_t value = 0, shift = 0
    cdef uint8_t byte
    while 0 <= c.at < c.end:
        byte = c.data[c.at]
        c.at += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value
    fail(c, PAST_END)
    return 0


cdef inline uint64_t sleb(Cursor *c) noexcept nogil:
    """A signed LEB128 number as two's complement."""
    cdef int64_t start = c.at, bits
    cdef uint64_t value = uleb(c)
    if c.at < 0:
        return 0
    bits = 7 * (c.at - start)
    if bits < 64 and c.data[c.at - 1] & 0x40:
        value |= ~<uint64_t>0 << bits
    return value


cdef inline void skip_leb(Cursor *c) noexcept nogil:
    """Pass over a LEB128 number of either kind."""
    while 0 <= c.at < c.end:
        c.at += 1
        if c.data[c.at - 1] < 0x80:
            return
    fail(c, PAST_END)


cdef inline void skip_string(Cursor *c) noexcept nogil:
    """Pass over a string and the NUL that ends it."""
    cdef const uint8_t *found = NULL
    if has(c, 1):
        found = <const uint8_t *>memchr(c.data + c.at, 0, c.end - c.at)
    if found is NULL:
        fail(c, PAST_END)
    else:
        c.at = found + 1 - c.data


cdef struct Length:
    int64_t value  # -1 if no section can be as long
    int64_t offset_size  # 4 or 8


cdef inline Length initial_length(Cursor *c) noexcept nogil:
    """As `length_within`, where the section ends at the cursor's end."""
    return length_within(c, c.end)


cdef inline Length length_within(Cursor *c, int64_t size) noexcept nogil:
    """How many bytes follow in a unit, or another part of a section of `size` bytes.

    Source: DWARF 5, 7.4.
    """
    cdef Length length
    cdef uint64_t value = fixed(c, 4)
    length.offset_size = 4
    if value == 0xFFFFFFFFULL:
        length.offset_size = 8
        value = fixed(c, 8)
    elif value >= 0xFFFFFFF0ULL:
        value = ~<uint64_t>0
    length.value = <int64_t>value if c.at >= 0 and value <= <uint64_t>size else -1
    return length
