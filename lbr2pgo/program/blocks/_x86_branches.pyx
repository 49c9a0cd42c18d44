"""A search for bytes that may be direct branches, over all code of a large program."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    _BITS_EACH = 16
    _TWO_BYTES = 0x0F

cdef uint64_t _SPREAD = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio: parts near numbers


cdef inline Py_ssize_t _bit(uint64_t address, int shift) noexcept nogil:
    return <Py_ssize_t>((address * _SPREAD) >> shift)


cdef int _shift(Py_ssize_t size) noexcept nogil:
    """By how much to shift a product for a bit in `size` bytes, which is a power of two."""
    cdef int shift = 61
    while size > 1:
        size >>= 1
        shift -= 1
    return shift


def address_filter(const uint64_t[::1] addresses):
    cdef Py_ssize_t i, bit, count = addresses.shape[0], size = 1
    while size * 8 < count * _BITS_EACH:
        size *= 2
    cdef uint8_t[::1] bits = np.zeros(size, np.uint8)
    cdef int shift = _shift(size)
    with nogil:
        for i in range(count):
            bit = _bit(addresses[i], shift)
            bits[bit >> 3] |= <uint8_t>(1 << (bit & 7))
    return np.asarray(bits)


cdef void _set_lengths(uint8_t* length) noexcept nogil:
    """Length of the direct branch that each opcode starts, 0 if it starts none.

    Intel SDM vol. 2: CALL and JMP rel32; Jcc rel32; Jcc, JMP, LOOP and JCXZ rel8.
    """
    cdef int opcode
    for opcode in range(256):
        length[opcode] = 2 if opcode & 0xF0 == 0x70 or opcode & 0xFC == 0xE0 else 0
    length[0xE8] = length[0xE9] = 5
    length[_TWO_BYTES] = 6
    length[0xEB] = 2


cdef inline int64_t _displacement(
    const uint8_t[::1] code, Py_ssize_t end, int length
) except? -1 nogil:
    """The number that an instruction of this length, which ends there, ends with."""
    cdef uint32_t wide
    if length == 2:
        return <int8_t>code[end - 1]
    wide = (
        code[end - 4] | <uint32_t>code[end - 3] << 8
        | <uint32_t>code[end - 2] << 16 | <uint32_t>code[end - 1] << 24
    )
    return <int32_t>wide


def find_branches(
    const uint8_t[::1] code,
    Py_ssize_t at,
    uint64_t address,
    const uint8_t[::1] wanted,
    uint64_t[:, ::1] found,
):
    cdef Py_ssize_t bit, size = code.shape[0], used = 0, room = found.shape[0]
    cdef int length, shift = _shift(wanted.shape[0])
    cdef uint64_t target
    cdef uint8_t[256] lengths
    _set_lengths(lengths)
    with nogil:
        while at + 1 < size and used < room:
            length = lengths[code[at]]
            if length == 6 and code[at + 1] & 0xF0 != 0x80:
                length = 0
            if length and at + length <= size:
                target = address + at + length + <uint64_t>_displacement(code, at + length, length)
                bit = _bit(target, shift)
                if wanted[bit >> 3] >> (bit & 7) & 1:
                    found[used, 0], found[used, 1] = address + at, target
                    used += 1
            at += 1
    return at, used
