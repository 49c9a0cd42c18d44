"""The earliest and the latest time of each of many things, of which each is seen often."""

from libc.stdint cimport int64_t, uint64_t


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
    cdef int64_t i
    with nogil:
        for k in range(number.shape[0]):
            i = number[k]
            if earliest[k] < first[i]:
                first[i], first_step[i] = earliest[k], step[k]
            elif earliest[k] == first[i]:
                first_step[i] = min(first_step[i], step[k])
            last[i] = max(last[i], latest[k])
