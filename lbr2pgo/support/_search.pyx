"""Searches for many values among ordered ones, each from where the one before it was found.

What is looked up mostly ascends, or is of the same function: its place is a few steps away.
"""

import numpy as np

from libc.stdint cimport INT64_MIN, int64_t, uint64_t

ctypedef fused Number:
    int64_t
    uint64_t

cdef inline Py_ssize_t _past(
    const Number *ordered, Py_ssize_t count, Number value, Py_ssize_t at
) noexcept nogil:
    """How many of the ordered are not above a value, looked for from `at` on, twice as far each
    time."""
    cdef Py_ssize_t past, middle, stride = 1
    if at == 0 or ordered[at - 1] <= value:
        past = at
        while past < count and ordered[past] <= value:
            at, past = past + 1, past + stride
            stride *= 2
        past = min(past, count)
    else:
        past = at - 1
        at = past
        while at > 0 and ordered[at - 1] > value:
            past, at = at - 1, at - stride
            stride *= 2
        at = max(at, 0)
    while at < past:
        middle = at + ((past - at) >> 1)
        if ordered[middle] <= value:
            at = middle + 1
        else:
            past = middle
    return at


cdef inline Py_ssize_t _below(
    const Number *ordered, Py_ssize_t count, Number value, Py_ssize_t at
) noexcept nogil:
    """How many of the ordered are below a value."""
    cdef Number lowest
    if Number is uint64_t:
        lowest = 0
    else:
        lowest = INT64_MIN
    return _past(ordered, count, value - 1, at) if value > lowest else 0


def last_at_or_below(const Number[::1] starts, const Number[::1] values):
    found = np.empty(values.shape[0], np.int64)
    cdef int64_t[::1] out = found
    cdef Py_ssize_t i, past = 0, count = starts.shape[0]
    cdef const Number *ordered = &starts[0] if count else NULL
    with nogil:
        for i in range(values.shape[0]):
            past = _past(ordered, count, values[i], past)
            out[i] = past - 1
    return found


def first_at_or_above(const Number[::1] ordered, const Number[::1] values):
    found = np.empty(values.shape[0], np.int64)
    cdef int64_t[::1] out = found
    cdef Py_ssize_t i, at = 0, count = ordered.shape[0]
    cdef const Number *rows = &ordered[0] if count else NULL
    with nogil:
        for i in range(values.shape[0]):
            at = _below(rows, count, values[i], at)
            out[i] = at
    return found


def interval_of(const Number[::1] starts, const Number[::1] ends, const Number[::1] values):
    found = last_at_or_below(starts, values)
    cdef int64_t[::1] out = found
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            if out[i] >= 0 and values[i] >= ends[out[i]]:
                out[i] = -1
    return found


def place_of(const Number[::1] values, const Number[::1] ordered):
    found = first_at_or_above(ordered, values)
    cdef int64_t[::1] out = found
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            if out[i] == ordered.shape[0] or ordered[out[i]] != values[i]:
                out[i] = -1
    return found
