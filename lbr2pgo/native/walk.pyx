"""Batches of branch stacks as the loops want them; the walk along one stands in walk.pxd."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef class Stacks:
    def __init__(
        self,
        const uint64_t[:, ::1] entries,
        const int64_t[::1] offsets,
        const int64_t[::1] spaces,
        const uint8_t[::1] kinds,
        const uint64_t[::1] weights,
        const uint64_t[:, ::1] bounds,
    ):
        self.entries, self.offsets, self.spaces = entries, offsets, spaces
        self.kinds, self.weights, self.bounds = kinds, weights, bounds
        self.size = spaces.shape[0]
        if entries.shape[1] != 3 or bounds.shape[1] != 2:
            raise ValueError("entries have three columns, bounds have two")
