"""Fall-throughs between neighbouring entries, with what their branch says of them.

Cycles of an entry speak of the run that it ends: from the older neighbour's target up to its own
source. What a misprediction costs is in the run behind it, so of timed runs both ends tell.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.native.bits cimport END, MISPREDICTED, PREDICTED, TO, cycles_of, prediction_of
from lbr2pgo.native.key_table cimport KNOWN_BITS, KeyTable, observe
from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.walk cimport Stacks, Walk, begin, step


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
    Stacks stacks, RowIds known, int64_t[::1] numbers, uint8_t[::1] predictions,
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
                    numbers[found] = known.number(walk.target, walk.end, walk.space)
                    predictions[found] = walk.end_flags & (MISPREDICTED | PREDICTED)
                    samples[found] = i
                    found += 1
                    if is_newest and walk.end == newest:
                        led_to[i] = known.number(target, target, walk.space)
                    is_newest = False
    return found
