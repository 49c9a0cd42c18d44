from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from lbr2pgo.native.growing cimport Growing


cdef class TextNumbers:
    cdef Growing text  # of all, end to end
    cdef Growing past  # where each ends
    # Of each text its hash, and below that its number plus one; 0 where none is.
    cdef uint64_t* places
    cdef size_t mask  # one less than how many there are, a power of two
    cdef int64_t number_of(self, const uint8_t* text, Py_ssize_t size) except -1 nogil
    cdef int _append(self, const uint8_t* text, Py_ssize_t size) except -1 nogil
    cdef int _grow(self) except -1 nogil
