"""A hash table of three sums under each key of four numbers, which grows by itself."""

import numpy as np

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

cdef enum:
    FIRST_SLOTS = 1 << 12

# A prime beyond any number of rows: its multiples go through all of them, far from one to the next.
cdef uint64_t STRIDE = 2654435761


cdef class KeyTable:
    def __cinit__(self):
        self.slots = <Slot*>calloc(FIRST_SLOTS, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        self.mask = FIRST_SLOTS - 1
        self.used = 0

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.used

    cdef int grow(self) except -1 nogil:
        """Move to twice as many slots."""
        cdef size_t i, mask = 2 * self.mask + 1
        cdef Slot* old
        cdef Slot* slots = <Slot*>calloc(mask + 1, sizeof(Slot))
        if slots == NULL:
            with gil:
                raise MemoryError
        for i in range(self.mask + 1):
            old = &self.slots[i]
            if old.key[3] != 0:
                find_slot(slots, mask, old.key[0], old.key[1], old.key[2], old.key[3])[0] = old[0]
        free(self.slots)
        self.slots, self.mask = slots, mask
        return 0

    def add(self, const uint64_t[:, ::1] keys, const uint64_t[:, ::1] sums):
        cdef Py_ssize_t n, i, count = keys.shape[0]
        if count != sums.shape[0]:
            raise ValueError(f"{count} keys with {sums.shape[0]} sums")
        for n in range(count):
            # The rows of another table come in the order of their slots. So they would fill a smaller
            # table from its front, where searches would go on and on before it grows.
            i = <uint64_t>n * STRIDE % <uint64_t>count
            if keys[i, 3] == 0:
                raise ValueError(f"key {i} ends with 0")
            add(
                self, keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3],
                sums[i, 0], sums[i, 1], sums[i, 2],
            )

    def rows(self):
        cdef Py_ssize_t n = self.used, k = 0
        cdef size_t i
        cdef int column
        found_keys, found_sums = np.empty((n, 4), np.uint64), np.empty((n, 3), np.uint64)
        cdef uint64_t[:, ::1] keys = found_keys, sums = found_sums
        for i in range(self.mask + 1):
            if self.slots[i].key[3] != 0:
                for column in range(4):
                    keys[k, column] = self.slots[i].key[column]
                for column in range(3):
                    sums[k, column] = self.slots[i].sums[column]
                k += 1
        return found_keys, found_sums
