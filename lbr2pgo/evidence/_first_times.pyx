"""The earliest and the latest time of each of many things, of which each is seen often."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from lbr2pgo.native.row_ids cimport RowIds


cdef inline int _note(
    int64_t i, uint64_t earliest, uint64_t step, uint64_t latest,
    uint64_t[::1] first, uint64_t[::1] first_step, uint64_t[::1] last,
) except -1 nogil:
    """Take a time into those of thing `i`."""
    if earliest < first[i]:
        first[i], first_step[i] = earliest, step
    elif earliest == first[i]:
        first_step[i] = min(first_step[i], step)
    last[i] = max(last[i], latest)
    return 0


def note(
    const int64_t[::1] number,
    const uint64_t[::1] earliest,
    const uint64_t[::1] step,
    const uint64_t[::1] latest,
    uint64_t[::1] first,
    uint64_t[::1] first_step,
    uint64_t[::1] last,
):
    cdef Py_ssize_t k
    with nogil:
        for k in range(number.shape[0]):
            _note(number[k], earliest[k], step[k], latest[k], first, first_step, last)


def number_branches(
    const int64_t[::1] offsets, const uint64_t[:, ::1] entries, const int64_t[::1] owner,
    RowIds known,
):
    numbers = np.full(entries.shape[0], -1, np.int64)
    cdef int64_t[::1] out = numbers
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(owner.shape[0]):
            for k in range(offsets[i], offsets[i + 1] if owner[i] >= 0 else 0):
                out[k] = known.number(entries[k, 0], entries[k, 1], <uint64_t>owner[i])
    return numbers


def note_stacks(
    const int64_t[::1] number,
    const int64_t[::1] offsets,
    const uint64_t[::1] time,
    uint64_t[::1] first,
    uint64_t[::1] first_step,
    uint64_t[::1] last,
):
    cdef Py_ssize_t i, k
    cdef uint64_t step
    with nogil:
        for i in range(time.shape[0]):
            for k in range(offsets[i], offsets[i + 1]):
                if number[k] >= 0:
                    step = 2 * (offsets[i + 1] - 1 - k)
                    _note(number[k], time[i], step, time[i], first, first_step, last)
