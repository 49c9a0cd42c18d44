"""Entries of `.eh_frame` and `.debug_frame`, for loops that go on with their instructions."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.program.elf._bytes cimport Bytes, Cursor
from lbr2pgo.native.growing cimport Growing


cdef struct Section:
    Bytes bytes
    uint64_t address
    bint is_debug  # `.debug_frame`, as DWARF has it


cdef struct Common:
    # What a common information entry says of the entries that refer to it.
    int64_t body  # offset behind its length
    uint8_t pointers
    uint8_t lsda
    bint has_augmentation
    uint64_t step  # bytes of code that a location advances by at least
    int64_t at  # instructions that every entry begins with
    int64_t end


cdef struct Entry:
    uint64_t start
    uint64_t size
    uint64_t lsda
    int64_t common
    int64_t at  # instructions
    int64_t end


cdef uint64_t pointer(Cursor *c, uint64_t section, uint8_t encoding) noexcept nogil
cdef int64_t walk(
    Section section, Growing *commons, Growing *entries, int64_t *damaged
) except -1 nogil
