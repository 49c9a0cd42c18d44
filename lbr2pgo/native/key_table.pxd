"""A hash table of three sums under each key of four numbers, which grows by itself."""

from libc.stdint cimport uint64_t

from lbr2pgo.native.bits cimport MISPREDICTED, PREDICTED

# A key's last number is `space << KNOWN_BITS | known`, with what is known of the others in
# `space`, in the bits of `bits.pxd`.
cpdef enum:
    KNOWN_BITS = 4

cdef struct Slot:
    uint64_t key[4]  # the last is 0 where the slot is free
    uint64_t sums[3]


cdef class KeyTable:
    cdef Slot* slots
    cdef size_t mask  # one less than the number of slots, a power of two
    cdef size_t used
    cdef int grow(self) except -1 nogil


cdef inline Slot* find_slot(
    Slot* slots, size_t mask, uint64_t a, uint64_t b, uint64_t c, uint64_t d
) noexcept nogil:
    """Where the key (a, b, c, d) is, or the free slot where it belongs. One is always free."""
    cdef Slot* slot
    cdef uint64_t h = a * 0x9E3779B97F4A7C15ULL
    h ^= (b + 0xC2B2AE3D27D4EB4FULL) * 0x165667B19E3779F9ULL
    h ^= c * 0xBF58476D1CE4E5B9ULL
    h ^= d * 0xC2B2AE3D27D4EB4FULL
    h ^= h >> 32
    h *= 0xBF58476D1CE4E5B9ULL
    h ^= h >> 32
    while True:
        slot = &slots[h & mask]
        if slot.key[3] == 0 or (
            slot.key[0] == a and slot.key[1] == b and slot.key[2] == c and slot.key[3] == d
        ):
            return slot
        h += 1


cdef inline int add(
    KeyTable table, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
    uint64_t first, uint64_t second, uint64_t third,
) except -1 nogil:
    """Add to the sums of the key (a, b, c, d), of which d is not 0."""
    cdef Slot* slot = find_slot(table.slots, table.mask, a, b, c, d)
    if slot.key[3] == 0:
        # A quarter of the slots stays free, so that searches end soon.
        if table.used >= table.mask - table.mask // 4:
            table.grow()
            slot = find_slot(table.slots, table.mask, a, b, c, d)
        table.used += 1
        slot.key[0], slot.key[1], slot.key[2], slot.key[3] = a, b, c, d
    slot.sums[0] += first
    slot.sums[1] += second
    slot.sums[2] += third
    return 0


cdef inline int observe(
    KeyTable table, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t weight, uint64_t flags
) except -1 nogil:
    """Count `weight` observations that a branch with these flags makes or ends.

    The sums: how many, how many of them mispredicted, and of how many that is not known.
    """
    return add(
        table, a, b, c, d, weight,
        weight if flags & MISPREDICTED else 0,
        0 if flags & (MISPREDICTED | PREDICTED) else weight,
    )
