"""Numbers for texts, in the order in which they come."""

cimport cython
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from lbr2pgo.native.growing cimport add, add_many, content, growing, release

cdef enum:
    FIRST_PLACES = 1 << 10
    WORD = 8


cdef uint64_t _hash(const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """32 bits of a text."""
    cdef uint64_t h = <uint64_t>size * 0x9E3779B97F4A7C15ULL, word
    while size > 0:
        word = 0
        memcpy(&word, text, WORD if size >= WORD else size)
        h = (h ^ word) * 0xBF58476D1CE4E5B9ULL
        h ^= h >> 29
        text += WORD
        size -= WORD
    return h * 0x165667B19E3779F9ULL >> 32


@cython.final
cdef class TextNumbers:
    def __cinit__(self):
        self.text, self.past = growing(1), growing(sizeof(int64_t))
        self.mask = FIRST_PLACES - 1
        self.places = <uint64_t*>calloc(FIRST_PLACES, sizeof(uint64_t))
        if self.places is NULL:
            raise MemoryError

    def __dealloc__(self):
        release(&self.text)
        release(&self.past)
        free(self.places)

    def __len__(self):
        return self.past.count

    def number(self, const uint8_t[::1] text):
        return self.number_of(&text[0] if text.shape[0] else NULL, text.shape[0])

    def number_all(
        self, const uint8_t[::1] text, const int64_t[::1] start, const int64_t[::1] end
    ):
        cdef Py_ssize_t i
        numbers = np.empty(start.shape[0], np.int64)
        cdef int64_t[::1] out = numbers
        with nogil:
            for i in range(start.shape[0]):
                if start[i] == end[i]:
                    out[i] = self.number_of(NULL, 0)
                    continue
                if not start[i] < end[i] <= text.shape[0]:
                    with gil:
                        raise IndexError(f"text {i} is from {start[i]} to {end[i]}")
                out[i] = self.number_of(&text[start[i]], end[i] - start[i])
        return numbers

    def texts(self):
        past = np.frombuffer(content(&self.past), np.int64)
        start = np.append(0, past)[: len(past)]
        return np.frombuffer(content(&self.text), np.uint8), start, past

    cdef int64_t number_of(self, const uint8_t* text, Py_ssize_t size) except -1 nogil:
        """The number of a text, which is how many there were before if it is new."""
        cdef uint64_t code = _hash(text, size), found
        cdef size_t place = code & self.mask
        cdef const int64_t* past = <const int64_t*>self.past.data
        cdef int64_t number, start
        while self.places[place]:
            found = self.places[place]
            if found >> 32 == code:
                number = <int64_t>(<uint32_t>found) - 1
                start = past[number - 1] if number else 0
                if past[number] - start == size and (
                    size == 0 or memcmp(self.text.data + start, text, size) == 0
                ):
                    return number
            place = (place + 1) & self.mask
        self._append(text, size)
        self.places[place] = code << 32 | <uint64_t>self.past.count
        if 2 * <size_t>self.past.count > self.mask:
            self._grow()
        return self.past.count - 1

    cdef int _append(self, const uint8_t* text, Py_ssize_t size) except -1 nogil:
        cdef int64_t* past
        if self.past.count >> 30:
            with gil:
                raise MemoryError("more than 2**30 texts")
        if size:
            memcpy(add_many(&self.text, size), text, size)
        past = <int64_t*>add(&self.past)
        past[0] = self.text.count
        return 0

    cdef int _grow(self) except -1 nogil:
        """Have twice as many places."""
        cdef size_t mask = 2 * self.mask + 1, i, place
        cdef uint64_t* places = <uint64_t*>calloc(mask + 1, sizeof(uint64_t))
        if places is NULL:
            raise MemoryError
        for i in range(self.mask + 1):
            if self.places[i]:
                place = (self.places[i] >> 32) & mask
                while places[place]:
                    place = (place + 1) & mask
                places[place] = self.places[i]
        free(self.places)
        self.places, self.mask = places, mask
        return 0
