"""Along which chains of blocks samples went, block by block."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef class ChainFollower:
    cdef const int32_t[::1] before
    cdef const int64_t[::1] owner
    cdef const int64_t[::1] slot
    cdef const uint8_t[::1] is_entry
    cdef uint64_t[:, ::1] known
    cdef uint64_t[:, ::1] went_on
    # Of each function: the slot of its block that ran last, the one where it came on this chain,
    # and in which stretch of time that was. What a sample shows without a gap is one stretch.
    cdef int64_t[::1] last_slot
    cdef int64_t[::1] first_slot
    cdef int64_t[::1] stretch_of
    cdef int64_t stretch

    def __init__(
        self,
        const int32_t[::1] before,
        const int64_t[::1] owner,
        const int64_t[::1] slot,
        const uint8_t[::1] is_entry,
        Py_ssize_t functions,
        uint64_t[:, ::1] known,
        uint64_t[:, ::1] went_on,
    ):
        self.before, self.owner, self.slot, self.is_entry = before, owner, slot, is_entry
        self.known, self.went_on = known, went_on
        self.last_slot, self.first_slot, self.stretch_of = np.full((3, functions), -1, np.int64)
        self.stretch = 0

    cdef int _arrive(self, int64_t i, uint64_t weight) except -1 nogil:
        """Block `i` begins to run: note how its function came here."""
        cdef int64_t function = self.owner[i], here = self.slot[i], before = -1, way
        cdef bint goes_on
        if self.stretch_of[function] == self.stretch:
            before = self.last_slot[function]
        goes_on = before >= 0 and here == before + 1
        # At an entry of the function it is another call that runs: how the first goes on isn't known.
        if goes_on or (before >= 0 and not self.is_entry[i]):
            way = min(before - self.first_slot[function], self.known.shape[1] - 1)
            self.known[before, way] += weight
            if goes_on:
                self.went_on[before, way] += weight
        if not goes_on:
            self.first_slot[function] = here
        self.last_slot[function] = here
        self.stretch_of[function] = self.stretch
        return 0

    def follow(
        self,
        const int64_t[:, ::1] places,
        const int32_t[::1] run,
        const int64_t[::1] sample,
        const int64_t[::1] led_to,
        const uint64_t[::1] weights,
    ):
        cdef Py_ssize_t k
        cdef int64_t i, place
        cdef uint64_t weight
        with nogil:
            for k in range(run.shape[0] - 1, -1, -1):
                if places[run[k], 0] < 0:
                    self.stretch += 1  # what ran in between is not known
                    continue
                weight = weights[sample[k]]
                place = places[run[k], 0]
                for i in range(self.before[place], self.before[places[run[k], 1] + 1]):
                    self._arrive(i, weight)
                if k == 0 or sample[k - 1] != sample[k]:
                    place = led_to[sample[k]]
                    if place >= 0 and self.before[place + 1] > self.before[place]:
                        self._arrive(self.before[place], weight)
                    self.stretch += 1
