"""What walks over stacks find: timed fall-throughs, iterations of loops, doubled entries.

Cycles of an entry speak of the run that it ends: from the older neighbour's target up to its own
source. What a misprediction costs is in the run behind it, so of timed runs both ends tell.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from lbr2pgo.native.bits cimport (
    ABORT, FROM, MISPREDICTED, MISSING, PREDICTED, SATURATED, TO, cycles_of, prediction_of,
)
from lbr2pgo.native.key_table cimport KNOWN_BITS, KeyTable, observe
from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.walk cimport (
    CONSECUTIVE, COUNTED, DUPLICATE, OUTSIDE, Stacks, Walk, begin, longest, step,
)


cpdef enum:
    CYCLES_BITS = 32


def list_runs(
    Stacks stacks, RowIds known, int32_t[::1] numbers, uint8_t[::1] predictions,
    uint8_t[::1] predictions_of_both, int64_t[::1] samples, int64_t[::1] led_to,
    uint8_t[::1] reasons,
):
    cdef Walk walk
    cdef Py_ssize_t i, entry, found = 0
    cdef uint64_t newest, target
    cdef bint is_newest
    with nogil:
        for i in range(stacks.size):
            if not begin(stacks, i, &walk):
                continue
            newest, target, is_newest = walk.rest[0], walk.rest[1], True
            entry = stacks.offsets[i]
            while step(&walk):
                reasons[entry] = walk.reason
                entry += 1
                if walk.has_end:
                    numbers[found] = <int32_t>known.number(
                        walk.target, walk.end, walk.space << CYCLES_BITS | cycles_of(walk.end_flags)
                    )
                    predictions[found] = walk.end_flags & (MISPREDICTED | PREDICTED)
                    predictions_of_both[found] = prediction_of(walk.flags, walk.end_flags)
                    samples[found] = i
                    found += 1
                    if is_newest and walk.end == newest:
                        led_to[i] = known.number(target, target, walk.space << CYCLES_BITS)
                    is_newest = False
    return found


def add_runs(
    const int32_t[::1] numbers, const uint8_t[::1] predictions, const int64_t[::1] samples,
    const uint64_t[::1] weights, uint64_t[:, ::1] sums,
):
    cdef Py_ssize_t k
    cdef int32_t number
    cdef uint64_t weight
    with nogil:
        for k in range(numbers.shape[0]):
            number, weight = numbers[k], weights[samples[k]]
            sums[number, 0] += weight
            if predictions[k] & MISPREDICTED:
                sums[number, 1] += weight
            elif not predictions[k] & PREDICTED:
                sums[number, 2] += weight


cdef enum:
    NEVER = MISSING - 1  # there is no earlier occurrence; stacks are too short for so many cycles
    SOURCE_WORDS = 4  # of 64 bits: 256

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


cdef inline int _source_bit(const Branch* branch) noexcept nogil:
    """The bit that all branches of one address have in common, and few others."""
    return <int>(branch.source * <uint64_t>0x9E3779B97F4A7C15 >> 56)


cdef int _count_unbroken(
    const Branch* branches, Py_ssize_t n, const Walk* walk, KeyTable table
) except -1 nogil:
    """Count the iterations that branches in unbroken time show."""
    cdef uint64_t cycles, prediction, mask
    cdef uint64_t older[SOURCE_WORDS]
    cdef int bit
    cdef Py_ssize_t k
    memset(older, 0, sizeof(older))
    for k in range(n - 1, -1, -1):
        bit = _source_bit(&branches[k])
        mask = <uint64_t>1 << (bit & 63)
        if branches[k].is_loop and older[bit >> 6] & mask:  # most loops are met once a stack
            cycles = _since_last(branches, k, n, &prediction)
            if cycles != NEVER:
                observe(
                    table, branches[k].target, branches[k].source, cycles,
                    walk.space << KNOWN_BITS | FROM | TO,
                    walk.weight, prediction,
                )
        older[bit >> 6] |= mask
    return 0


cdef int _count_stack(
    const Walk* walk, const uint8_t* reasons, Branch* branches, KeyTable table
) except -1 nogil:
    """Count the iterations of one stack, of which `branches` has room for all."""
    cdef const uint64_t* entry = walk.rest
    cdef Py_ssize_t n = 0
    cdef int reason
    while entry != walk.stop:
        reason = reasons[0]
        if (reason == COUNTED or reason == OUTSIDE) and not entry[2] & ABORT:
            branches[n].source, branches[n].target, branches[n].flags = entry[0], entry[1], entry[2]
            branches[n].cycles = cycles_of(entry[2])
            branches[n].is_loop = walk.low <= entry[1] <= entry[0] < walk.high
            n += 1
        elif reason != DUPLICATE:  # how long this took is not known
            _count_unbroken(branches, n, walk, table)
            n = 0
        entry += 3
        reasons += 1
    return _count_unbroken(branches, n, walk, table)


def count_iterations(Stacks stacks, const uint8_t[::1] reasons, KeyTable table):
    cdef Walk walk
    cdef Py_ssize_t i
    cdef Branch* branches = <Branch*>malloc((longest(stacks) + 1) * sizeof(Branch))
    if branches == NULL:
        raise MemoryError
    try:
        if reasons.shape[0] != stacks.entries.shape[0]:
            raise ValueError(f"{reasons.shape[0]} reasons of {stacks.entries.shape[0]} entries")
        with nogil:
            for i in range(stacks.size):
                if begin(stacks, i, &walk) and walk.kind == CONSECUTIVE:
                    _count_stack(&walk, &reasons[stacks.offsets[i]], branches, table)
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
