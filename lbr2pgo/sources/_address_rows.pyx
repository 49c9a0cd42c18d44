"""Rows of the text that AutoFDO and llvm-profgen exchange: `from-to:count`, `from->to:count`."""

from libc.stdint cimport uint8_t, uint64_t

from lbr2pgo.sources._text cimport line_end, read_decimal, read_hex, skip_blanks, starts_with

cdef enum Form:
    LONE_ADDRESS
    ADDRESS_RANGE
    BRANCH_PAIR

ADDRESS, RANGE, BRANCH = LONE_ADDRESS, ADDRESS_RANGE, BRANCH_PAIR


cdef Py_ssize_t _read_second(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Form form, uint64_t *address
) noexcept nogil:
    """Read what stands between the first address and the colon; `end` if that is wrong."""
    cdef Py_ssize_t start, after
    address[0] = 0
    if form == LONE_ADDRESS:
        return place
    if form == BRANCH_PAIR and starts_with(text, place, end, b"->", 2):
        start = place + 2
    elif form == ADDRESS_RANGE and starts_with(text, place, end, b"-", 1):
        start = place + 1
    else:
        return end
    after = read_hex(text, start, end, address)
    return after if after > start else end


cdef bint _read_row(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Form form, uint64_t[3] row
) noexcept nogil:
    cdef Py_ssize_t after, start = skip_blanks(text, place, end)
    after = read_hex(text, start, end, &row[0])
    if after == start:
        return False
    start = _read_second(text, after, end, form, &row[1])
    if start == end or text[start] != b":":
        return False
    after = read_decimal(text, start + 1, end, &row[2])
    return after > start + 1 and skip_blanks(text, after, end) == end


def read_rows(const uint8_t[::1] text, Py_ssize_t place, Form form, uint64_t[:, ::1] rows):
    cdef const uint8_t *start = &text[0] if text.shape[0] else NULL
    cdef Py_ssize_t i, stop, end = text.shape[0], lines = 0, found = 0
    cdef uint64_t[3] row
    with nogil:
        while 0 <= place < end and lines < rows.shape[0]:
            stop = line_end(start, place, end)
            if _read_row(start, place, stop, form, row):
                for i in range(3):
                    rows[found, i] = row[i]
                found += 1
            lines += 1
            place = stop + 1
    return min(place, end), lines, found
