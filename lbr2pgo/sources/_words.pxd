"""Words of eight bytes, little-endian, wherever they stand among bytes."""

from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    WORD = 8


cdef inline uint64_t word_at(const uint8_t* at) noexcept nogil:
    """The number that the WORD bytes from `at` on hold; one load when compiled."""
    return (
        <uint64_t>at[0] | <uint64_t>at[1] << 8 | <uint64_t>at[2] << 16 | <uint64_t>at[3] << 24
        | <uint64_t>at[4] << 32 | <uint64_t>at[5] << 40 | <uint64_t>at[6] << 48
        | <uint64_t>at[7] << 56
    )
