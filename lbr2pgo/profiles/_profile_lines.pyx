"""The lines of a sample profile in text, and rows of any table, from columns."""

from collections import namedtuple

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.profiles._text_out cimport (
    MOST_DIGITS, Out, out_into, put, put_byte, put_decimal, put_hex, put_name,
)

ContextLines = namedtuple(
    "ContextLines", "depth line discriminator name total head body checksum attributes"
)
CallerStacks = namedtuple("CallerStacks", "context parent line discriminator name deepest")
BodyLines = namedtuple("BodyLines", "line discriminator counts calls")
CallParts = namedtuple("CallParts", "callee counts")

cpdef enum:
    HEADER_BYTES = 66
    BODY_BYTES = 64
    CALL_BYTES = 22
    CHECKSUM_BYTES = 36
    ATTRIBUTE_BYTES = 19
    FRAME_BYTES = 45


cdef int _put_place(Out* out, int64_t line, int64_t discriminator) except -1 nogil:
    """Write a location as `12.3`."""
    put_decimal(out, line)
    if discriminator:
        put_byte(out, b".")
        put_decimal(out, discriminator)
    return 0


cdef int _put_indent(Out* out, int64_t indent) except -1 nogil:
    for _ in range(indent):
        put_byte(out, b" ")
    return 0


cdef int _begin_line(Out* out, int64_t indent, int64_t line, int64_t discriminator) except -1 nogil:
    """Write a location as `  12.3: `."""
    _put_indent(out, indent)
    _put_place(out, line, discriminator)
    return put(out, b": ", 2)


cdef class ProfileLines:
    cdef const int64_t[::1] depth, line, discriminator, name, body
    cdef const uint64_t[::1] total, head, checksum
    cdef const uint8_t[::1] attributes
    cdef const int64_t[::1] context, caller, call_line, call_discriminator, function
    cdef int64_t[::1] around  # the last context of each depth
    cdef int64_t[::1] path  # contexts from a function to its outermost caller
    cdef bint has_ends
    cdef const int64_t[::1] body_line, body_discriminator, calls
    cdef const uint64_t[::1] body_count
    cdef const int64_t[::1] callee
    cdef const uint64_t[::1] call_count
    cdef const uint8_t[::1] text
    cdef const int64_t[::1] start, end

    def __init__(self, contexts, body, calls, names, stacks=None):
        (
            self.depth, self.line, self.discriminator, self.name, self.total, self.head, self.body,
            self.checksum, self.attributes,
        ) = contexts
        self.context = None
        if stacks is not None:
            (
                self.context, self.caller, self.call_line, self.call_discriminator, self.function,
                deepest,
            ) = stacks
            self.path = np.zeros(deepest + 1, np.int64)
        self.has_ends = self.checksum is not None or self.attributes is not None
        self.around = np.zeros(int(np.max(contexts.depth, initial=0)) + 1, np.int64)
        self.body_line, self.body_discriminator, self.body_count, self.calls = body
        self.callee, self.call_count = calls
        self.text, self.start, self.end = names.text, names.start, names.end

    cdef int _put_header(self, Out* out, Py_ssize_t i) except -1 nogil:
        """Write a context's first line, without its end."""
        if self.depth[i]:
            _begin_line(out, self.depth[i], self.line[i], self.discriminator[i])
        if self.context is None:
            put_name(out, self.text, self.start, self.end, self.name[i])
        else:
            put_byte(out, b"[")
            self._put_stack(out, self.context[i])
            put_byte(out, b"]")
        put_byte(out, b":")
        put_decimal(out, self.total[i])
        if self.depth[i] == 0:
            put_byte(out, b":")
            put_decimal(out, self.head[i])
        return 0

    cdef int _put_stack(self, Out* out, int64_t context) except -1 nogil:
        """Write a function behind its callers, the outermost one first."""
        cdef Py_ssize_t depth = 0
        while context >= 0:
            self.path[depth] = context
            depth += 1
            context = self.caller[context]
        while depth:
            depth -= 1
            put_name(out, self.text, self.start, self.end, self.function[self.path[depth]])
            if depth:
                context = self.path[depth - 1]
                put_byte(out, b":")
                _put_place(out, self.call_line[context], self.call_discriminator[context])
                put(out, b" @ ", 3)
        return 0

    cdef int _put_calls(self, Out* out, Py_ssize_t row) except -1 nogil:
        """Write the calls of a body row."""
        cdef Py_ssize_t k
        for k in range(self.calls[row], self.calls[row + 1]):
            put_byte(out, b" ")
            put_name(out, self.text, self.start, self.end, self.callee[k])
            put_byte(out, b":")
            put_decimal(out, self.call_count[k])
        return 0

    cdef int _put_context(self, Out* out, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t row
        self._put_header(out, i)
        put_byte(out, b"\n")
        for row in range(self.body[i], self.body[i + 1]):
            _begin_line(out, self.depth[i] + 1, self.body_line[row], self.body_discriminator[row])
            put_decimal(out, self.body_count[row])
            self._put_calls(out, row)
            put_byte(out, b"\n")
        return 0

    cdef int _put_ends(self, Out* out, int64_t depth, int64_t following) except -1 nogil:
        """Write what comes last of contexts, where one of `following` depth comes next."""
        cdef int64_t context
        while depth >= following:
            context = self.around[depth]
            if self.checksum is not None:
                _put_indent(out, depth + 1)
                put(out, b"!CFGChecksum: ", 14)
                put_decimal(out, self.checksum[context])
                put_byte(out, b"\n")
            if self.attributes is not None and self.attributes[context]:
                _put_indent(out, depth + 1)
                put(out, b"!Attributes: ", 13)
                put_decimal(out, self.attributes[context])
                put_byte(out, b"\n")
            depth -= 1
        return 0

    def put(self, Py_ssize_t first, Py_ssize_t end, uint8_t[::1] room):
        cdef Py_ssize_t i
        cdef int64_t following
        cdef Out out = out_into(room)
        with nogil:
            for i in range(first, end):
                self._put_context(&out, i)
                if self.has_ends:
                    self.around[self.depth[i]] = i
                    following = self.depth[i + 1] if i + 1 < end else 0
                    self._put_ends(&out, self.depth[i], following)
        return out.at - out.start


NUMBER_BYTES = MOST_DIGITS


cdef int _put_row(
    Out* out,
    const uint8_t[::1] form,
    const uint64_t[:, ::1] rows,
    Py_ssize_t row,
    const uint8_t[::1] text,
    const int64_t[::1] start,
    const int64_t[::1] end,
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
            put_name(out, text, start, end, rows[row, column])
        else:
            put_decimal(out, rows[row, column])
        column += 1
        i += 2
    return 0


def put_lines(
    const uint8_t[::1] form,
    const uint64_t[:, ::1] rows,
    names,
    uint8_t[::1] room,
):
    cdef const uint8_t[::1] text = names.text
    cdef const int64_t[::1] start = names.start, end = names.end
    cdef Py_ssize_t row, count = rows.shape[0]
    cdef Out out = out_into(room)
    with nogil:
        for row in range(count):
            _put_row(&out, form, rows, row, text, start, end)
    return out.at - out.start
