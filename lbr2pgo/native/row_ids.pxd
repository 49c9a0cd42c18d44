from libc.stdint cimport int32_t, uint64_t


cdef class RowIds:
    cdef uint64_t[:, ::1] keys
    cdef int32_t[::1] table
    cdef readonly Py_ssize_t used
    cdef int fetch(self, uint64_t mixed) except -1 nogil
    cdef Py_ssize_t find(self, uint64_t a, uint64_t b, uint64_t c) except -2 nogil
    cdef Py_ssize_t number(self, uint64_t a, uint64_t b, uint64_t c) except -1 nogil
    cdef int _grow(self) except -1


cdef class RowSums:
    cdef RowIds ids
    cdef uint64_t[::1] sums
    cdef Py_ssize_t add(
        self, uint64_t a, uint64_t b, uint64_t c, uint64_t count
    ) except -1 nogil
    cdef int _grow(self) except -1
