"""Numbers for rows of three integers, in the order in which they come, and sums under them."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from lbr2pgo.native.key_table cimport prefetch
from lbr2pgo.native.sums cimport saturating

cdef enum:
    AHEAD = 64  # rows whose places are on their way from memory when they are needed
    FIRST_CAPACITY = 1 << 10
    MOST_ROWS = 1 << 30  # numbers are 32 bits wide


cdef inline uint64_t _mixed(uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    cdef uint64_t h = a * <uint64_t>0x9E3779B97F4A7C15
    h ^= (b + <uint64_t>0xC2B2AE3D27D4EB4F) * <uint64_t>0x165667B19E3779F9
    h ^= c * <uint64_t>0xBF58476D1CE4E5B9
    h ^= h >> 32
    h *= <uint64_t>0xBF58476D1CE4E5B9
    return h ^ (h >> 32)


cdef inline Py_ssize_t _place(RowIds ids, uint64_t a, uint64_t b, uint64_t c) except -1 nogil:
    """Where in the table a row's number stands, or would stand."""
    cdef uint64_t mask = <uint64_t>ids.table.shape[0] - 1
    cdef uint64_t place = _mixed(a, b, c) & mask
    cdef Py_ssize_t row = ids.table[place]
    while row >= 0:
        if ids.keys[row, 0] == a and ids.keys[row, 1] == b and ids.keys[row, 2] == c:
            break
        place = (place + 1) & mask
        row = ids.table[place]
    return place


@cython.final
cdef class RowIds:
    def __init__(self):
        self.keys = np.empty((FIRST_CAPACITY, 3), np.uint64)
        self.table = np.full(2 * FIRST_CAPACITY, -1, np.int32)
        self.used = 0

    def __len__(self):
        return self.used

    def rows(self, Py_ssize_t first=0):
        return np.asarray(self.keys[first : self.used]).copy()

    def number_rows(self, const uint64_t[::1] a, const uint64_t[::1] b, third=None):
        cdef Py_ssize_t i, start = 0, size = a.shape[0]
        cdef const uint64_t[::1] c = np.zeros(size, np.uint64) if third is None else third
        cdef int64_t[::1] numbers = np.empty(size, np.int64)
        with nogil:
            while start < size:
                for i in range(start, min(start + AHEAD, size)):
                    self.fetch(_mixed(a[i], b[i], c[i]))
                for i in range(start, min(start + AHEAD, size)):
                    numbers[i] = self.number(a[i], b[i], c[i])
                start += AHEAD
        return np.asarray(numbers)

    cdef int fetch(self, uint64_t mixed) except -1 nogil:
        """Begin to fetch from memory what is known of a row."""
        prefetch(&self.table[mixed & (<uint64_t>self.table.shape[0] - 1)])
        return 0

    cdef Py_ssize_t find(self, uint64_t a, uint64_t b, uint64_t c) except -2 nogil:
        """The number of a row, -1 if it has none."""
        return self.table[_place(self, a, b, c)]

    cdef Py_ssize_t number(self, uint64_t a, uint64_t b, uint64_t c) except -1 nogil:
        """The number of a row, which is `used` as it was before if the row is new."""
        cdef Py_ssize_t place = _place(self, a, b, c)
        cdef Py_ssize_t row = self.table[place]
        if row >= 0:
            return row
        if self.used == self.keys.shape[0]:
            with gil:
                self._grow()
            return self.number(a, b, c)
        row = self.used
        self.keys[row, 0], self.keys[row, 1], self.keys[row, 2] = a, b, c
        self.table[place] = <int32_t>row
        self.used += 1
        return row

    cdef int _grow(self) except -1:
        cdef Py_ssize_t capacity = 2 * self.keys.shape[0], row
        cdef uint64_t mask = 2 * <uint64_t>capacity - 1, place
        if capacity > MOST_ROWS:
            raise MemoryError("more than 2**30 distinct rows")
        keys = np.empty((capacity, 3), np.uint64)
        keys[: self.used] = self.keys
        self.keys = keys
        self.table = np.full(2 * capacity, -1, np.int32)
        with nogil:
            for row in range(self.used):
                place = _mixed(self.keys[row, 0], self.keys[row, 1], self.keys[row, 2]) & mask
                while self.table[place] >= 0:
                    place = (place + 1) & mask
                self.table[place] = <int32_t>row
        return 0


@cython.final
cdef class RowSums:
    def __init__(self):
        self.ids = RowIds()
        self.sums = np.zeros(FIRST_CAPACITY, np.uint64)

    def __len__(self):
        return self.ids.used

    def rows(self):
        return self.ids.rows()

    def counts(self):
        return np.asarray(self.sums[: self.ids.used]).copy()

    def find_rows(
        self, const uint64_t[::1] a, const uint64_t[::1] b, const uint64_t[::1] c
    ):
        cdef Py_ssize_t i
        cdef int64_t[::1] found = np.empty(a.shape[0], np.int64)
        with nogil:
            for i in range(a.shape[0]):
                found[i] = self.ids.find(a[i], b[i], c[i])
        return np.asarray(found)

    def add_rows(
        self, const uint64_t[::1] a, const uint64_t[::1] b, const uint64_t[::1] c,
        const uint64_t[::1] count,
    ):
        cdef Py_ssize_t i
        with nogil:
            for i in range(a.shape[0]):
                self.add(a[i], b[i], c[i], count[i])

    def add_ranges(
        self, const uint64_t[::1] a, const int64_t[::1] first, const int64_t[::1] last,
        const uint64_t[::1] count,
    ):
        cdef Py_ssize_t i
        cdef int64_t b
        with nogil:
            for i in range(a.shape[0]):
                for b in range(first[i], last[i] + 1):
                    self.add(a[i], <uint64_t>b, 0, count[i])

    cdef Py_ssize_t add(
        self, uint64_t a, uint64_t b, uint64_t c, uint64_t count
    ) except -1 nogil:
        """Add to a row's sum; the row's number."""
        cdef Py_ssize_t row = self.ids.number(a, b, c)
        if row >= self.sums.shape[0]:
            with gil:
                self._grow()
        self.sums[row] = saturating(self.sums[row], count)
        return row

    cdef int _grow(self) except -1:
        """Have room for twice as many; apart, since `add` would take the GIL each time."""
        cdef Py_ssize_t size = self.sums.shape[0]
        sums = np.zeros(2 * size, np.uint64)
        sums[:size] = self.sums
        self.sums = sums
        return 0
