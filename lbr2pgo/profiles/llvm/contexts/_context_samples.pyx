"""What callers know of functions that were inlined into them."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.native.row_ids cimport RowIds, RowSums
from lbr2pgo.native.sums cimport saturating


cdef int _note_first(int64_t[::1] first, RowIds lines, Py_ssize_t row) except -1 nogil:
    """Note a line that may be the first one of its context."""
    cdef uint64_t context = lines.keys[row, 0]
    if first[context] < 0 or lines.keys[row, 1] < lines.keys[first[context], 1]:
        first[context] = row
    return 0


def infer_calls(
    RowIds contexts, uint8_t[::1] has_samples, const uint64_t[::1] head, uint64_t[::1] total,
    RowSums lines, RowSums calls,
):
    cdef int64_t[::1] first = np.full(has_samples.shape[0], -1, np.int64)
    cdef Py_ssize_t row, context, before
    cdef uint64_t caller, location, count
    with nogil:
        for row in range(lines.ids.used):
            _note_first(first, lines.ids, row)
        for context in range(has_samples.shape[0] - 1, 0, -1):
            caller, location = contexts.keys[context, 0], contexts.keys[context, 1]
            if not has_samples[context] or head[context] or caller == 0:
                continue
            row = first[context]
            count = lines.sums[row] if row >= 0 else 0
            if count == 0 and (row < 0 or total[context]):
                count = 1
            has_samples[caller] = 1
            total[caller] = saturating(total[caller], count)
            before = lines.ids.used
            row = lines.add(caller, location, 0, count)
            if row == before:
                _note_first(first, lines.ids, row)
            calls.add(caller, location, contexts.keys[context, 2], count)
