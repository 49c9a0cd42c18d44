"""Text that is put into bytes, piece by piece, as far as there is room."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    MOST_DIGITS = 20


cdef struct Out:
    # Where the first byte went and the next one goes, and where there is no more room.
    uint8_t* start
    uint8_t* at
    const uint8_t* stop


cdef inline Out out_into(uint8_t[::1] room) noexcept nogil:
    """Valid as long as the room's owner is."""
    cdef Out out
    out.start = NULL
    if room.shape[0]:
        with cython.boundscheck(False):
            out.start = &room[0]
    out.at = out.start
    out.stop = out.at + room.shape[0]
    return out


cdef inline int put(Out* out, const uint8_t* text, Py_ssize_t size) except -1 nogil:
    if size > out.stop - out.at:
        with gil:
            raise IndexError("the lines are longer than the room for them")
    memcpy(out.at, text, size)
    out.at += size
    return 0


cdef inline int put_byte(Out* out, uint8_t byte) except -1 nogil:
    return put(out, &byte, 1)


cdef inline int put_decimal(Out* out, uint64_t number) except -1 nogil:
    cdef uint8_t digits[MOST_DIGITS]
    cdef int first = MOST_DIGITS - 1
    digits[first] = c"0" + <uint8_t>(number % 10)
    while number >= 10:
        number //= 10
        first -= 1
        digits[first] = c"0" + <uint8_t>(number % 10)
    return put(out, &digits[first], MOST_DIGITS - first)


cdef inline int put_hex(Out* out, uint64_t number) except -1 nogil:
    cdef uint8_t digits[MOST_DIGITS]
    cdef int first = MOST_DIGITS
    cdef uint8_t digit
    while True:
        digit = number & 0xF
        first -= 1
        digits[first] = digit + (c"0" if digit < 10 else c"a" - 10)
        number >>= 4
        if number == 0:
            return put(out, &digits[first], MOST_DIGITS - first)


cdef inline int put_name(
    Out* out, const uint8_t[::1] text, const int64_t[::1] start, const int64_t[::1] end,
    int64_t name,
) except -1 nogil:
    """Put one of the names that lie in `text`."""
    cdef int64_t first = start[name], stop = end[name]
    if first == stop:
        return 0
    if not 0 <= first < stop <= text.shape[0]:
        with gil:
            raise IndexError(f"name {name} has bytes {first} to {stop}, which don't exist")
    return put(out, &text[first], stop - first)
