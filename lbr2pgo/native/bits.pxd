"""Bits that loops and tables share: the flags of an entry, and what is known of a trace.

`model.branch_stacks` and `model.branch_counts` hand them on to all others.
"""

from libc.stdint cimport uint64_t

# The flags of an entry, as in struct perf_branch_entry (Linux: include/uapi/linux/perf_event.h).
cpdef enum:
    MISPREDICTED = 1
    PREDICTED = 2
    IN_TRANSACTION = 4
    ABORT = 8
    CYCLES_SHIFT = 4
    CYCLES_MASK = 0xFFFF
    TYPE_SHIFT = 20
    TYPE_MASK = 0xF
    SPEC_SHIFT = 24
    SPEC_MASK = 0x3
    NEW_TYPE_SHIFT = 26
    NEW_TYPE_MASK = 0xF
    PRIV_SHIFT = 30
    PRIV_MASK = 0x7
    NOT_TAKEN_SHIFT = 33
    # Arm's BRBE counts to 20 bits: those that perf's field has no room for, at the end of the word
    # that Linux fills last.
    CYCLES_HIGH_SHIFT = 60
    # A count of 0, where perf's 0 says that there is none: all 20 bits, which no counter reaches.
    ZERO_CYCLES = 0xFFFFF
    # Values of the field `type`, PERF_BR_*: from ERET on (IRQ, SERROR, NO_TX, and EXTEND_ABI for
    # faults, fast interrupts and debug exceptions) no instruction of the program asked for it.
    FIRST_EXCEPTION = 11
    # Of the field `spec`, PERF_BR_SPEC_*.
    SPEC_WRONG_PATH = 1

# What the cycles of an entry, or of several, may be instead of a number.
cpdef enum:
    MISSING = 0x7FFFFFFE  # the recorder did not say
    SATURATED = 0x7FFFFFFF  # a counter at its end: so many as it counts, or more

# What is known of a trace.
cpdef enum:
    FROM = 1
    TO = 2
    END = 4
    BRANCH = 8
    RETURN = 16
    OUTSIDE = 32


cdef inline uint64_t cycles_of(uint64_t flags) noexcept nogil:
    """Cycles of an entry: MISSING, SATURATED, or as many as there were."""
    cdef uint64_t low = (flags >> CYCLES_SHIFT) & CYCLES_MASK, high = flags >> CYCLES_HIGH_SHIFT
    if high == 0 and low == CYCLES_MASK:
        return SATURATED
    if high == 0 and low == 0:
        return MISSING
    return 0 if high << 16 | low == ZERO_CYCLES else high << 16 | low


cdef inline uint64_t prediction_of(uint64_t some, uint64_t others) noexcept nogil:
    """Of several branches: MISPREDICTED if one was, PREDICTED if all were, 0 if nobody knows."""
    if (some | others) & MISPREDICTED:
        return MISPREDICTED
    return some & others & PREDICTED
