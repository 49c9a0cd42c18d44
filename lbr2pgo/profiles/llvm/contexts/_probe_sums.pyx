"""How often probes ran in each calling context: one array of sums for each function there."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from lbr2pgo.native.growing cimport Growing, add, growing, release
from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.sums cimport saturating


cdef inline bint _goes_on(
    const int32_t[::1] inline, const int64_t[::1] function, int64_t probe, int64_t first
) except -1 nogil:
    """Whether a probe is of the same function as the one before it in a run."""
    return (
        probe > first
        and inline[probe] == inline[probe - 1]
        and function[probe] == function[probe - 1]
    )


def sums_of_probes(
    const int64_t[::1] node, const int64_t[::1] first, const int64_t[::1] last,
    const uint64_t[::1] count, const int32_t[::1] inline, const int64_t[::1] function,
    const int64_t[::1] slot, const int64_t[::1] bounds,
):
    cdef RowIds places = RowIds()
    cdef Growing met = growing(sizeof(int64_t))  # the place of each piece of a run
    cdef int64_t[::1] start
    cdef uint64_t[::1] sums
    cdef Py_ssize_t i, piece = 0
    cdef int64_t probe, at = 0
    try:
        with nogil:
            for i in range(node.shape[0]):
                for probe in range(first[i], last[i] + 1):
                    if not _goes_on(inline, function, probe, first[i]):
                        (<int64_t *>add(&met))[0] = places.number(
                            <uint64_t>node[i], <uint64_t>inline[probe], <uint64_t>function[probe]
                        )
        rows = places.rows().astype(np.int64)
        sizes = np.diff(bounds)[rows[:, 1]]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        start = offsets[: len(rows)] - np.asarray(bounds)[rows[:, 1]]
        sums = np.zeros(sizes.sum(), np.uint64)
        with nogil:
            for i in range(node.shape[0]):
                for probe in range(first[i], last[i] + 1):
                    if not _goes_on(inline, function, probe, first[i]):
                        at = start[(<const int64_t *>met.data)[piece]]
                        piece += 1
                    sums[at + slot[probe]] = saturating(sums[at + slot[probe]], count[i])
    finally:
        release(&met)
    return rows, offsets, np.asarray(sums)
