"""Along which chains of blocks samples went, block by block."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef packed struct Course:
    # What a function did last: when (what a sample shows without a gap is one stretch of time), in
    # the block of which slot, and of which slot was the one where it came on this chain.
    int64_t stretch
    int32_t last
    int32_t first

_COURSE = [("stretch", np.int64), ("last", np.int32), ("first", np.int32)]


cdef class ChainFollower:
    cdef const int32_t[:, ::1] blocks  # function, slot, whether it is entered there
    cdef uint64_t[:, ::1] known
    cdef uint64_t[:, ::1] went_on
    cdef Course[::1] courses
    cdef int64_t stretch

    def __init__(
        self,
        const int32_t[:, ::1] blocks,
        Py_ssize_t functions,
        uint64_t[:, ::1] known,
        uint64_t[:, ::1] went_on,
    ):
        if blocks.shape[1] != 3:
            raise ValueError("blocks have three columns")
        self.blocks, self.known, self.went_on = blocks, known, went_on
        self.courses = np.zeros(functions, _COURSE)
        self.stretch = 1

    cdef inline int _arrive(self, int32_t i, uint64_t weight) except -1 nogil:
        """Block `i` begins to run: note how its function came here."""
        cdef Course* course = &self.courses[self.blocks[i, 0]]
        cdef int32_t here = self.blocks[i, 1], before = -1, way
        cdef bint goes_on
        if course.stretch == self.stretch:
            before = course.last
        goes_on = before >= 0 and here == before + 1
        # At an entry of the function it is another call that runs: how the first goes on isn't known.
        if goes_on or (before >= 0 and not self.blocks[i, 2]):
            way = min(before - course.first, <int32_t>self.known.shape[1] - 1)
            self.known[before, way] += weight
            if goes_on:
                self.went_on[before, way] += weight
        if not goes_on:
            course.first = here
        course.last = here
        course.stretch = self.stretch
        return 0

    def follow(
        self,
        const int32_t[:, ::1] rows,
        const int32_t[::1] run,
        const int64_t[::1] sample,
        const int32_t[::1] led_to,
        const uint64_t[::1] weights,
    ):
        cdef Py_ssize_t k
        cdef int32_t i, number
        cdef uint64_t weight
        with nogil:
            for k in range(run.shape[0] - 1, -1, -1):
                number = run[k]
                if rows[number, 0] < 0:
                    self.stretch += 1  # what ran in between is not known
                    continue
                weight = weights[sample[k]]
                for i in range(rows[number, 0], rows[number, 1]):
                    self._arrive(i, weight)
                if k == 0 or sample[k - 1] != sample[k]:
                    if led_to[sample[k]] >= 0:
                        self._arrive(led_to[sample[k]], weight)
                    self.stretch += 1
