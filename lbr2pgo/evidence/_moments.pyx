"""How observations of branches are spread over samples: sums that tell how alike a sample's are."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from lbr2pgo.native.bits cimport MISPREDICTED

MOMENTS = 5


cdef class _Seen:
    """How often branches were seen in the sample at hand, and how often with the outcome."""

    cdef int32_t[:, ::1] times
    cdef int32_t[::1] touched
    cdef Py_ssize_t used
    cdef double[:, ::1] moments

    def __init__(self, double[:, ::1] moments):
        self.times = np.zeros((moments.shape[0], 2), np.int32)
        self.touched = np.zeros(moments.shape[0], np.int32)
        self.used, self.moments = 0, moments

    cdef int note(self, int64_t i, bint hit) except -1 nogil:
        if self.times[i, 0] == 0:
            self.touched[self.used] = <int32_t>i
            self.used += 1
        self.times[i, 0] += 1
        self.times[i, 1] += hit
        return 0

    cdef int close(self, double weight) except -1 nogil:
        """Add the sample to the moments, and forget it."""
        cdef Py_ssize_t k
        cdef int64_t i
        cdef double n, t
        for k in range(self.used):
            i = self.touched[k]
            n, t = <double>self.times[i, 0], <double>self.times[i, 1]
            self.moments[i, 0] += weight * n
            self.moments[i, 1] += weight * t
            self.moments[i, 2] += weight * n * n
            self.moments[i, 3] += weight * t * n
            self.moments[i, 4] += weight * t * t
            self.times[i, 0] = self.times[i, 1] = 0
        self.used = 0
        return 0


cdef class MomentSums:
    cdef const int32_t[::1] conditional
    cdef const int32_t[::1] end
    cdef _Seen outcomes
    cdef _Seen misses

    def __init__(
        self,
        const int32_t[::1] conditional,
        const int32_t[::1] end,
        double[:, ::1] outcomes,
        double[:, ::1] misses,
    ):
        self.conditional, self.end = conditional, end
        self.outcomes, self.misses = _Seen(outcomes), _Seen(misses)

    def add(
        self,
        const int64_t[:, ::1] places,
        const int32_t[::1] run,
        const uint8_t[::1] prediction,
        const int64_t[::1] sample,
        const uint64_t[::1] weights,
    ):
        cdef Py_ssize_t k, runs = run.shape[0]
        cdef int64_t last
        cdef int32_t i, past
        cdef double weight
        with nogil:
            for k in range(runs):
                if places[run[k], 0] >= 0:
                    last = places[run[k], 1]
                    past = self.conditional[last]
                    for i in range(self.conditional[places[run[k], 0]], past):
                        self.outcomes.note(i, False)
                    if self.conditional[last + 1] > past:
                        self.outcomes.note(past, True)
                    if prediction[k] != 0 and self.end[last + 1] > self.end[last]:
                        self.misses.note(self.end[last], prediction[k] & MISPREDICTED != 0)
                if k + 1 == runs or sample[k + 1] != sample[k]:
                    weight = <double>weights[sample[k]]
                    self.outcomes.close(weight)
                    self.misses.close(weight)
