"""A hash table of three sums under each key of four numbers, which grows by itself.

Rows stand one behind the other as they came, so that those of a loop are neighbours in memory. A
search goes over places of eight bytes, half of them free at least: it hardly meets any row but its
own.
"""

from libc.stdint cimport uint32_t, uint64_t

from lbr2pgo.native.bits cimport MISPREDICTED, PREDICTED

# A key's last number is `space << KNOWN_BITS | known`, with what is known of the others in
# `space`, in the bits of `bits.pxd`.
cpdef enum:
    KNOWN_BITS = 4

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void*) noexcept nogil

cdef struct Row:
    uint64_t key[4]
    uint64_t sums[3]


cdef class KeyTable:
    cdef Row* stored
    cdef size_t used
    cdef size_t room  # for so many rows
    # Of each row its hash, and below that its number plus one; 0 where none is.
    cdef uint64_t* places
    cdef size_t mask  # one less than how many there are, a power of two
    cdef int append(self, size_t place, uint64_t code, const Row* row) except -1 nogil
    cdef size_t free_place(self, uint64_t code) noexcept nogil
    cdef int grow(self) except -1 nogil


cdef inline uint64_t hash_of(uint64_t a, uint64_t b, uint64_t c, uint64_t d) noexcept nogil:
    """32 bits of a key."""
    cdef uint64_t h = a * 0x9E3779B97F4A7C15ULL
    h ^= (b + 0xC2B2AE3D27D4EB4FULL) * 0x165667B19E3779F9ULL
    h ^= c * 0xBF58476D1CE4E5B9ULL
    h ^= d * 0xC2B2AE3D27D4EB4FULL
    h ^= h >> 32
    return h * 0xBF58476D1CE4E5B9ULL >> 32


cdef inline int add(
    KeyTable table, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
    uint64_t first, uint64_t second, uint64_t third,
) except -1 nogil:
    """Add to the sums of the key (a, b, c, d)."""
    return add_hashed(table, hash_of(a, b, c, d), a, b, c, d, first, second, third)


cdef inline int add_hashed(
    KeyTable table, uint64_t code, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
    uint64_t first, uint64_t second, uint64_t third,
) except -1 nogil:
    """As `add`, of which the hash of the key is known."""
    cdef uint64_t found
    cdef size_t place = code & table.mask
    cdef Row* row
    cdef Row new
    while True:
        found = table.places[place]
        if found == 0:
            new.key[0], new.key[1], new.key[2], new.key[3] = a, b, c, d
            new.sums[0], new.sums[1], new.sums[2] = first, second, third
            return table.append(place, code, &new)
        if found >> 32 == code:
            row = &table.stored[<uint32_t>found - 1]
            if row.key[0] == a and row.key[1] == b and row.key[2] == c and row.key[3] == d:
                break
        place = (place + 1) & table.mask
    row.sums[0] += first
    row.sums[1] += second
    row.sums[2] += third
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
