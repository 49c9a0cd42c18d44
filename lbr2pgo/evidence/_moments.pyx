"""How observations of branches are spread over samples: sums that tell how alike a sample's are."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.native.bits cimport MISPREDICTED

MOMENTS = 5


cdef Py_ssize_t _note(
    int64_t[:, ::1] seen, int64_t[::1] touched, Py_ssize_t used, int64_t i, bint hit
) except -1 nogil:
    """Note one observation of branch `i` in the current sample; how many branches it has now."""
    if seen[i, 0] == 0:
        touched[used] = i
        used += 1
    seen[i, 0] += 1
    seen[i, 1] += hit
    return used


cdef int _close(
    int64_t[:, ::1] seen, int64_t[::1] touched, Py_ssize_t used, double weight,
    double[:, ::1] moments,
) except -1 nogil:
    """Add a sample's observations to the moments, and forget them."""
    cdef Py_ssize_t k
    cdef int64_t i
    cdef double n, t
    for k in range(used):
        i = touched[k]
        n, t = <double>seen[i, 0], <double>seen[i, 1]
        moments[i, 0] += weight * n
        moments[i, 1] += weight * t
        moments[i, 2] += weight * n * n
        moments[i, 3] += weight * t * n
        moments[i, 4] += weight * t * t
        seen[i, 0] = seen[i, 1] = 0
    return 0


def add_moments(
    const int64_t[::1] first,
    const int64_t[::1] last,
    const uint8_t[::1] prediction,
    const int64_t[::1] sample,
    const uint64_t[::1] weights,
    const int64_t[::1] next_conditional,
    double[:, ::1] outcomes,
    double[:, ::1] misses,
):
    cdef Py_ssize_t size = outcomes.shape[0]
    cdef int64_t[:, ::1] seen = np.zeros((size, 2), np.int64)
    cdef int64_t[:, ::1] ends = np.zeros((size, 2), np.int64)
    cdef int64_t[::1] touched = np.zeros(size, np.int64)
    cdef int64_t[::1] ends_touched = np.zeros(size, np.int64)
    cdef Py_ssize_t k, runs = first.shape[0], used = 0, ends_used = 0
    cdef int64_t i
    cdef double weight
    with nogil:
        for k in range(runs):
            i = next_conditional[first[k]]
            while i <= last[k] and i < size:
                used = _note(seen, touched, used, i, i == last[k])
                i = next_conditional[i + 1]
            if prediction[k] != 0:
                ends_used = _note(
                    ends, ends_touched, ends_used, last[k], prediction[k] & MISPREDICTED != 0
                )
            if k + 1 == runs or sample[k + 1] != sample[k]:
                weight = <double>weights[sample[k]]
                _close(seen, touched, used, weight, outcomes)
                _close(ends, ends_touched, ends_used, weight, misses)
                used = ends_used = 0
