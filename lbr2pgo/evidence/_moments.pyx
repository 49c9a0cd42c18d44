"""How observations of branches are spread over samples: sums that tell how alike a sample's are."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from lbr2pgo.native.bits cimport MISPREDICTED

MOMENTS = 5


cdef enum:
    HITS = 32  # bits below them


cdef class _Seen:
    """How often branches were seen in the sample at hand, and how often with the outcome."""

    cdef uint64_t[::1] times  # by branch: with the outcome << HITS | in all
    cdef int32_t[::1] touched
    cdef Py_ssize_t used
    cdef double[:, ::1] moments

    def __init__(self, double[:, ::1] moments):
        self.times = np.zeros(moments.shape[0], np.uint64)
        self.touched = np.zeros(moments.shape[0] + 1, np.int32)
        self.used, self.moments = 0, moments

    cdef inline int note(self, int32_t i, bint hit) except -1 nogil:
        cdef uint64_t before = self.times[i]
        # Whether it is new to the sample nobody can guess: so the next one may take its place.
        self.touched[self.used] = i
        self.used += before == 0
        self.times[i] = before + 1 + (<uint64_t>hit << HITS)
        return 0

    cdef inline int close(self, double weight) except -1 nogil:
        """Add the sample to the moments, and forget it."""
        cdef Py_ssize_t k
        cdef int32_t i
        cdef double n, t
        for k in range(self.used):
            i = self.touched[k]
            n, t = <double><uint32_t>self.times[i], <double>(self.times[i] >> HITS)
            self.moments[i, 0] += weight * n
            self.moments[i, 2] += weight * n * n
            if t != 0:
                self.moments[i, 1] += weight * t
                self.moments[i, 3] += weight * t * n
                self.moments[i, 4] += weight * t * t
            self.times[i] = 0
        self.used = 0
        return 0


cdef class MomentSums:
    cdef _Seen outcomes
    cdef _Seen misses

    def __init__(self, double[:, ::1] outcomes, double[:, ::1] misses):
        self.outcomes, self.misses = _Seen(outcomes), _Seen(misses)

    def add(
        self,
        const int32_t[:, ::1] rows,
        const int32_t[::1] run,
        const uint8_t[::1] prediction,
        const int64_t[::1] sample,
        const uint64_t[::1] weights,
    ):
        cdef Py_ssize_t k, runs = run.shape[0]
        cdef int32_t i, number
        cdef double weight
        with nogil:
            for k in range(runs):
                number = run[k]
                for i in range(rows[number, 0], rows[number, 1]):
                    self.outcomes.note(i, False)
                if rows[number, 2] >= 0:
                    self.outcomes.note(rows[number, 2], True)
                if prediction[k] != 0 and rows[number, 3] >= 0:
                    self.misses.note(rows[number, 3], prediction[k] & MISPREDICTED != 0)
                if k + 1 == runs or sample[k + 1] != sample[k]:
                    weight = <double>weights[sample[k]]
                    self.outcomes.close(weight)
                    self.misses.close(weight)
