"""Traces of branch stacks, counted."""

from libc.stdint cimport int64_t, uint64_t

from lbr2pgo.native.bits cimport BRANCH, END, FROM, PREDICTED, TO
from lbr2pgo.counting._file_spans cimport FileSpans, note
from lbr2pgo.native.key_table cimport KNOWN_BITS, KeyTable, observe
from lbr2pgo.native.walk cimport COUNTED, OUTSIDE, REASONS, Stacks, Walk, begin, step


cdef inline uint64_t _known(const Walk* walk) noexcept nogil:
    """The `known` bits of the trace of the entry at hand; 0 if it tells nothing."""
    cdef uint64_t known = 0
    if walk.reason == COUNTED:
        known = BRANCH | (FROM if walk.from_in else 0) | (TO if walk.to_in else 0)
    if walk.has_end:
        known |= TO | END
    return known


cdef inline int _count_odd(
    const Walk* walk, KeyTable table, uint64_t* tallies, FileSpans files, Py_ssize_t sample
) except -1 nogil:
    """Count what the entry at hand tells, whatever it is."""
    cdef uint64_t known = _known(walk)
    tallies[walk.reason] += walk.weight
    if walk.gap != COUNTED:
        tallies[walk.gap] += walk.weight
    if walk.reason == OUTSIDE and files is not None:
        note(files, sample, walk.source if walk.source else walk.target, walk.weight)
    if known:
        observe(
            table,
            walk.source if known & BRANCH else 0,  # outside as well: it tells the file
            walk.target,
            walk.end if known & END else 0,
            walk.space << KNOWN_BITS | known,
            walk.weight,
            walk.flags if known & BRANCH else PREDICTED,  # a bare run: nothing to predict
        )
    return 0


cdef inline int _count(
    Walk* walk, KeyTable table, uint64_t* tallies, FileSpans files, Py_ssize_t sample
) except -1 nogil:
    cdef uint64_t plain = 0, whole = walk.space << KNOWN_BITS | BRANCH | FROM | TO | END
    while step(walk):
        if walk.reason == COUNTED and walk.from_in and walk.has_end:
            # Nearly all: a branch in the image, and the run behind it.
            observe(table, walk.source, walk.target, walk.end, whole, walk.weight, walk.flags)
            plain += walk.weight
        else:
            _count_odd(walk, table, tallies, files, sample)
    tallies[<int>COUNTED] += plain
    return 0


def count_traces(Stacks stacks, KeyTable table, uint64_t[::1] tallies, FileSpans files=None):
    cdef Walk walk
    cdef Py_ssize_t i
    if tallies.shape[0] != REASONS:
        raise ValueError(f"tallies must have shape ({REASONS},), not ({tallies.shape[0]},)")
    with nogil:
        for i in range(stacks.size):
            if begin(stacks, i, &walk):
                _count(&walk, table, &tallies[0], files, i)


cdef inline bint _touches(Stacks stacks, Py_ssize_t i) except -1 nogil:
    """Whether an entry of a sample that counts begins or ends in the image, whatever it is."""
    cdef Walk walk
    cdef const uint64_t* entry
    cdef uint64_t size
    cdef bint found = False
    if not begin(stacks, i, &walk):
        return False
    size, entry = walk.high - walk.low, walk.rest
    while entry != walk.stop:
        found |= entry[0] - walk.low < size or entry[1] - walk.low < size
        entry += 3
    return found


def touching(Stacks stacks, int64_t[::1] spaces):
    cdef Py_ssize_t i
    with nogil:
        for i in range(stacks.size):
            spaces[i] = stacks.spaces[i] if _touches(stacks, i) else -1
