"""A hash table of three sums under each key of four numbers, which grows by itself."""

import cython
import numpy as np

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef enum:
    AHEAD = 64  # rows of a batch that are looked for together
    FIRST_ROWS = 1 << 10
    PLACES = 2  # for each row that there is room for: at least half are free, so searches end soon


@cython.final
cdef class KeyTable:
    def __cinit__(self):
        self.stored = <Row*>malloc(FIRST_ROWS * sizeof(Row))
        self.places = <uint64_t*>calloc(PLACES * FIRST_ROWS, sizeof(uint64_t))
        if self.stored == NULL or self.places == NULL:
            raise MemoryError
        self.room = FIRST_ROWS
        self.mask = PLACES * FIRST_ROWS - 1
        self.used = 0

    def __dealloc__(self):
        free(self.stored)
        free(self.places)

    def __len__(self):
        return self.used

    cdef int append(self, size_t place, uint64_t code, const Row* row) except -1 nogil:
        """Take in a new row, for whose hash a place is free."""
        if self.used == self.room:
            self.grow()
            place = self.free_place(code)
        self.stored[self.used] = row[0]
        self.used += 1
        self.places[place] = code << 32 | self.used
        return 0

    cdef size_t free_place(self, uint64_t code) noexcept nogil:
        """Where the next row with this hash belongs."""
        cdef size_t place = code & self.mask
        while self.places[place]:
            place = (place + 1) & self.mask
        return place

    cdef int grow(self) except -1 nogil:
        """Have room for twice as many rows."""
        cdef size_t room = 2 * self.room, i
        cdef uint64_t* places = <uint64_t*>calloc(PLACES * room, sizeof(uint64_t))
        cdef Row* stored = <Row*>realloc(self.stored, room * sizeof(Row))
        if stored != NULL:
            self.stored = stored
        if places == NULL or stored == NULL or self.used >> 31:
            free(places)
            with gil:
                raise MemoryError
        places, self.places = self.places, places
        self.room, self.mask = room, PLACES * room - 1
        for i in range(PLACES * room // 2):
            if places[i]:
                self.places[self.free_place(places[i] >> 32)] = places[i]
        free(places)
        return 0

    def add(self, const uint64_t[:, :] keys, const uint64_t[:, :] sums):
        cdef Py_ssize_t n = keys.shape[0], start = 0
        if n != sums.shape[0]:
            raise ValueError(f"{n} keys with {sums.shape[0]} sums")
        with nogil:
            while start < n:
                _add_some(self, keys, sums, start, min(start + AHEAD, n))
                start += AHEAD

    def rows(self):
        cdef size_t i
        cdef int column
        found_keys = np.empty((self.used, 4), np.uint64)
        found_sums = np.empty((self.used, 3), np.uint64)
        cdef uint64_t[:, ::1] keys = found_keys, sums = found_sums
        for i in range(self.used):
            for column in range(4):
                keys[i, column] = self.stored[i].key[column]
            for column in range(3):
                sums[i, column] = self.stored[i].sums[column]
        return found_keys, found_sums


cdef int _add_some(
    KeyTable table, const uint64_t[:, :] keys, const uint64_t[:, :] sums,
    Py_ssize_t start, Py_ssize_t stop,
) except -1 nogil:
    """Add `AHEAD` rows at most: where they belong is on its way from memory when it is needed."""
    cdef uint64_t codes[AHEAD]
    cdef uint64_t found
    cdef Py_ssize_t i
    for i in range(start, stop):
        codes[i - start] = hash_of(keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3])
        prefetch(&table.places[codes[i - start] & table.mask])
    for i in range(start, stop):
        found = table.places[codes[i - start] & table.mask]
        if found:
            prefetch(&table.stored[<uint32_t>found - 1])
            prefetch(&table.stored[<uint32_t>found - 1].sums[2])
    for i in range(start, stop):
        add_hashed(
            table, codes[i - start], keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3],
            sums[i, 0], sums[i, 1], sums[i, 2],
        )
    return 0
