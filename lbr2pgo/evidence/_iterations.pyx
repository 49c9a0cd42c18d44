"""Cycles of loop iterations: from a backward branch to its next occurrence in a stack."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc

from lbr2pgo.native.bits cimport ABORT, FROM, MISSING, SATURATED, TO, cycles_of, prediction_of
from lbr2pgo.native.key_table cimport KNOWN_BITS, KeyTable, observe
from lbr2pgo.native.walk cimport (
    CONSECUTIVE,
    COUNTED,
    DUPLICATE,
    OUTSIDE,
    Stacks,
    Walk,
    begin,
    longest,
    step,
)

cdef enum:
    NEVER = MISSING - 1  # there is no earlier occurrence; stacks are too short for so many cycles

cdef struct Branch:
    uint64_t source
    uint64_t target
    uint64_t cycles
    uint64_t flags
    bint is_loop  # goes back within the image


cdef uint64_t _since_last(
    const Branch* branches, Py_ssize_t k, Py_ssize_t n, uint64_t* prediction
) noexcept nogil:
    """Cycles from branch `k` back to when it was taken before, MISSING, SATURATED or NEVER.

    Missing if one in between doesn't say; saturated if one is at its end. `prediction` is that of
    all its branches, with the one before: what a misprediction costs is behind it.
    """
    cdef uint64_t total = 0
    cdef bint is_missing = False, is_saturated = False
    cdef Py_ssize_t j
    prediction[0] = branches[k].flags
    for j in range(k + 1, n):
        prediction[0] = prediction_of(prediction[0], branches[j].flags)
        is_missing |= branches[j - 1].cycles == MISSING
        is_saturated |= branches[j - 1].cycles == SATURATED
        total += branches[j - 1].cycles
        if branches[j].source == branches[k].source and branches[j].target == branches[k].target:
            if is_missing:
                return MISSING
            return SATURATED if is_saturated or total >= NEVER else total
    return NEVER


cdef int _count(
    const Branch* branches, Py_ssize_t n, const Walk* walk, KeyTable table
) except -1 nogil:
    """Count the iterations that branches in unbroken time show."""
    cdef uint64_t cycles, prediction
    cdef Py_ssize_t k
    for k in range(n):
        if branches[k].is_loop:
            cycles = _since_last(branches, k, n, &prediction)
            if cycles != NEVER:
                observe(
                    table, branches[k].target, branches[k].source, cycles,
                    walk.space << KNOWN_BITS | FROM | TO,
                    walk.weight, prediction,
                )
    return 0


cdef int _count_stack(Walk* walk, Branch* branches, KeyTable table) except -1 nogil:
    """Count the iterations of one stack, of which `branches` has room for all."""
    cdef Py_ssize_t n = 0
    while step(walk):
        if walk.reason == DUPLICATE:
            continue
        if (walk.reason == COUNTED or walk.reason == OUTSIDE) and not walk.flags & ABORT:
            branches[n].source, branches[n].target = walk.source, walk.target
            branches[n].flags = walk.flags
            branches[n].cycles = cycles_of(walk.flags)
            branches[n].is_loop = walk.from_in and walk.to_in and walk.target <= walk.source
            n += 1
        else:  # how long this took is not known
            _count(branches, n, walk, table)
            n = 0
    return _count(branches, n, walk, table)


def count_iterations(Stacks stacks, KeyTable table):
    cdef Walk walk
    cdef Py_ssize_t i
    cdef Branch* branches = <Branch*>malloc((longest(stacks) + 1) * sizeof(Branch))
    if branches == NULL:
        raise MemoryError
    try:
        with nogil:
            for i in range(stacks.size):
                if begin(stacks, i, &walk) and walk.kind == CONSECUTIVE:
                    _count_stack(&walk, branches, table)
    finally:
        free(branches)
