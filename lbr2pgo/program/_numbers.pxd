"""Reads of numbers, one behind the other, from the bytes of a section.

A reader that meets a problem stands still and reads zeros from then on: a chain of reads needs one
check, behind the last. Little-endian only, as are the images that get here (x86-64, AArch64).
"""

cimport cython
from libc.stdint cimport uint8_t, uint64_t

# What is wrong with the number at which a reader stands.
cdef enum:
    FINE_NUMBER = 0
    CUT_NUMBER = 1  # it ends behind the section
    LARGE_NUMBER = 2  # it has more than 64 bits


cdef struct Reader:
    Py_ssize_t at
    int problem


# The line before each access checks it; as `noexcept`, which is what makes a number cheap, these
# could not raise. (Decorators of inline functions in a .pxd are of no effect.)
cdef inline uint64_t fixed(const uint8_t[::1] data, Reader *r, int size) noexcept nogil:
    """An unsigned number of `size` bytes, at most 8."""
    cdef uint64_t value = 0
    cdef int i
    if r.problem == FINE_NUMBER and data.shape[0] - r.at < size:
        r.problem = CUT_NUMBER
    if r.problem != FINE_NUMBER:
        return 0
    with cython.boundscheck(False):
        for i in range(size):
            value |= <uint64_t>data[r.at + i] << (8 * i)
    r.at += size
    return value


cdef inline uint64_t leb(
    const uint8_t[::1] data, Reader *r, bint is_signed=False
) noexcept nogil:
    """A LEB128 number of at most ten bytes; a signed one as two's complement."""
    cdef uint64_t value = 0
    cdef uint8_t byte = 0x80
    cdef int shift = 0
    while byte & 0x80:
        if r.problem == FINE_NUMBER and r.at >= data.shape[0]:
            r.problem = CUT_NUMBER
        elif r.problem == FINE_NUMBER and shift >= 64:
            r.problem = LARGE_NUMBER
        if r.problem != FINE_NUMBER:
            return 0
        with cython.boundscheck(False):
            byte = data[r.at]
        r.at += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    if is_signed and shift < 64 and byte & 0x40:
        value |= ~<uint64_t>0 << shift
    return value
