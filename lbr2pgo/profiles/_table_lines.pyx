"""Rows of numbers and names as lines of text."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.profiles._text_out cimport (
    MOST_DIGITS, Out, out_into, put_byte, put_decimal, put_hex, put_name,
)

NUMBER_BYTES = MOST_DIGITS


cdef int _put_row(
    Out* out,
    const uint8_t[::1] form,
    const uint64_t[:, ::1] rows,
    Py_ssize_t row,
    const uint8_t[::1] text,
    const int64_t[::1] start,
) except -1 nogil:
    cdef Py_ssize_t i = 0, column = 0, size = form.shape[0]
    while i < size:
        if form[i] != b"%":
            put_byte(out, form[i])
            i += 1
            continue
        if form[i + 1] == b"x":
            put_hex(out, rows[row, column])
        elif form[i + 1] == b"s":
            put_name(out, text, start, rows[row, column])
        else:
            put_decimal(out, rows[row, column])
        column += 1
        i += 2
    return 0


def put_lines(
    const uint8_t[::1] form,
    const uint64_t[:, ::1] rows,
    const uint8_t[::1] text,
    const int64_t[::1] start,
    uint8_t[::1] room,
):
    cdef Py_ssize_t row, count = rows.shape[0]
    cdef Out out = out_into(room)
    with nogil:
        for row in range(count):
            _put_row(&out, form, rows, row, text, start)
    return out.at - out.start
