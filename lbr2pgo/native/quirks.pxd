"""What recorders write that is no branch of the program: one function for each such quirk.

`model.quirks` describes each, and `walk.pxd` asks them. All are pure.
"""

from libc.stdint cimport uint64_t

from lbr2pgo.native.bits cimport (
    FIRST_EXCEPTION,
    NOT_TAKEN_SHIFT,
    SPEC_MASK,
    SPEC_SHIFT,
    SPEC_WRONG_PATH,
    TYPE_MASK,
    TYPE_SHIFT,
)


cdef inline bint is_empty(uint64_t source, uint64_t target) noexcept nogil:
    """A place of the stack that was not used."""
    return source == 0 and target == 0


cdef inline bint is_poison(uint64_t source, uint64_t target) noexcept nogil:
    """Linux marks with this where the valid entries of AMD's Zen 3 BRS end."""
    cdef uint64_t poison = 0xFFFFFFFFFFFFFFFEULL
    return source == poison or target == poison


cdef inline bint is_wrong_path(uint64_t flags) noexcept nogil:
    """A speculative branch that was never executed."""
    return (flags >> SPEC_SHIFT) & SPEC_MASK == SPEC_WRONG_PATH


cdef inline bint is_bogus(uint64_t target) noexcept nogil:
    """AMD erratum 1452: an entry is bogus if the reserved bit of its LBR_TO register is set.

    Where a reader handed the register on as it was, the bit stands in the address, and tells as
    long as the bits below say that it is a user's.
    """
    cdef uint64_t reserved = 1ULL << 61, kernel = 1ULL << 57
    return target & (reserved | kernel) == reserved


cdef inline bint is_not_taken(uint64_t flags) noexcept nogil:
    """An observation that a branch fell through, as Arm SPE makes them."""
    return flags >> NOT_TAKEN_SHIFT & 1


cdef inline bint is_exception(uint64_t flags) noexcept nogil:
    """A transfer that no instruction of the program asked for: an interrupt, a fault, a return."""
    return (flags >> TYPE_SHIFT) & TYPE_MASK >= FIRST_EXCEPTION


cdef inline bint is_interrupt(uint64_t flags) noexcept nogil:
    """An exception that the program goes on from where it came: all kinds but returns."""
    return (flags >> TYPE_SHIFT) & TYPE_MASK > FIRST_EXCEPTION


cdef inline bint is_duplicate(
    uint64_t newest_source, uint64_t newest_target, uint64_t source, uint64_t target
) noexcept nogil:
    """Whether a stack's second entry is the recorder's copy of the newest one.

    Skylake and its descendants can record the newest branch twice, the copy with another cycle
    count. A loop shorter than the limit, which is that of google/autofdo, repeats
    legitimately.
    """
    cdef uint64_t stride_limit = 0x1000
    if newest_source != source or newest_target != target:
        return False
    return target > source or source - target >= stride_limit
