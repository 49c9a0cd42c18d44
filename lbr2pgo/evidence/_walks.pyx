"""What walks over stacks find: timed fall-throughs, iterations of loops, doubled entries.

Cycles of an entry speak of the run that it ends: from the older neighbour's target up to its own
source. What a misprediction costs is in the run behind it, so of timed runs both ends tell.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from lbr2pgo.native.bits cimport (
    ABORT, END, FROM, MISPREDICTED, MISSING, PREDICTED, SATURATED, TO, cycles_of, prediction_of,
)
from lbr2pgo.native.key_table cimport KNOWN_BITS, KeyTable, observe
from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.walk cimport (
    CONSECUTIVE, COUNTED, DUPLICATE, OUTSIDE, Stacks, Walk, begin, longest, step,
)


cdef int _count(Walk* walk, KeyTable table) except -1 nogil:
    while step(walk):
        if walk.has_end:
            observe(
                table, walk.target, walk.end, cycles_of(walk.end_flags),
                walk.space << KNOWN_BITS | TO | END, walk.weight,
                prediction_of(walk.flags, walk.end_flags),
            )
    return 0


def count_cycles(Stacks stacks, KeyTable table):
    cdef Walk walk
    cdef Py_ssize_t i
    with nogil:
        for i in range(stacks.size):
            if begin(stacks, i, &walk):
                _count(&walk, table)


def list_runs(
    Stacks stacks, RowIds known, int32_t[::1] numbers, uint8_t[::1] predictions,
    int64_t[::1] samples, int64_t[::1] led_to,
):
    cdef Walk walk
    cdef Py_ssize_t i, found = 0
    cdef uint64_t newest, target
    cdef bint is_newest
    with nogil:
        for i in range(stacks.size):
            if not begin(stacks, i, &walk):
                continue
            newest, target, is_newest = walk.rest[0], walk.rest[1], True
            while step(&walk):
                if walk.has_end:
                    numbers[found] = <int32_t>known.number(walk.target, walk.end, walk.space)
                    predictions[found] = walk.end_flags & (MISPREDICTED | PREDICTED)
                    samples[found] = i
                    found += 1
                    if is_newest and walk.end == newest:
                        led_to[i] = known.number(target, target, walk.space)
                    is_newest = False
    return found


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
    all its branches, with the one before: what a misprediction costs is behind it. Where execution
    falls into the head from before it, the loop had been left, and it is no iteration.
    """
    cdef uint64_t head = branches[k].target, latch = branches[k].source
    cdef uint64_t total = 0
    cdef bint is_missing = False, is_saturated = False
    cdef Py_ssize_t j
    prediction[0] = branches[k].flags
    for j in range(k + 1, n):
        if branches[j].target < head and head <= branches[j - 1].source <= latch:
            return NEVER
        prediction[0] = prediction_of(prediction[0], branches[j].flags)
        is_missing |= branches[j - 1].cycles == MISSING
        is_saturated |= branches[j - 1].cycles == SATURATED
        total += branches[j - 1].cycles
        if branches[j].source == latch and branches[j].target == head:
            if is_missing:
                return MISSING
            return SATURATED if is_saturated or total >= NEVER else total
    return NEVER


cdef int _count_unbroken(
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
            _count_unbroken(branches, n, walk, table)
            n = 0
    return _count_unbroken(branches, n, walk, table)


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


def list_duplicates(Stacks stacks, int64_t[::1] samples):
    cdef Walk walk
    cdef Py_ssize_t i, found = 0
    with nogil:
        for i in range(stacks.size):
            # Only a stack's second entry can be one.
            if begin(stacks, i, &walk) and step(&walk) and step(&walk):
                if walk.reason == DUPLICATE:
                    samples[found] = i
                    found += 1
    return found
