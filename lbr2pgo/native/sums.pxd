"""Sums of counts, which end at the largest one instead of wrapping around."""

from libc.stdint cimport uint64_t


cdef inline uint64_t saturating(uint64_t a, uint64_t b) noexcept nogil:
    """The sum of two, at most 2**64 - 1 (LLVM: Support/MathExtras.h, SaturatingAdd)."""
    return a + b if a <= <uint64_t>-1 - b else <uint64_t>-1


cdef inline uint64_t product(uint64_t a, uint64_t b) noexcept nogil:
    """The product of two, at most 2**64 - 1 (LLVM: Support/MathExtras.h, SaturatingMultiply)."""
    if (a | b) >> 32 == 0 or a <= <uint64_t>-1 // b:  # dividing takes long
        return a * b
    return <uint64_t>-1
