"""Where files are mapped, and how much was seen in each."""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    UNKNOWN = 0  # numbers of files that have no name of their own
    KERNEL = 1


cdef class FileSpans:
    cdef const int64_t[::1] views
    cdef const int64_t[::1] offsets
    cdef const uint64_t[:, ::1] spans
    cdef const int64_t[::1] files
    cdef uint64_t[::1] counts
    # Where the address before was found: most are of the same loop. An empty span at first.
    cdef int64_t last_view
    cdef uint64_t last_start
    cdef uint64_t last_end
    cdef int64_t last_file


cdef inline int note(
    FileSpans spans, Py_ssize_t sample, uint64_t address, uint64_t weight
) except -1 nogil:
    """Count an address that a sample has seen for the file that is mapped there."""
    cdef bint is_kernel = address >> 63
    cdef int64_t view = 0 if is_kernel else spans.views[sample]
    if view == spans.last_view and spans.last_start <= address < spans.last_end:
        spans.counts[spans.last_file] += weight
        return 0
    cdef int64_t low = spans.offsets[view], first = low, past = spans.offsets[view + 1], middle
    cdef int64_t file = KERNEL if is_kernel else UNKNOWN
    while low < past:  # the first span that starts behind the address
        middle = (low + past) >> 1
        if spans.spans[middle, 0] <= address:
            low = middle + 1
        else:
            past = middle
    if low > first and address < spans.spans[low - 1, 1]:
        file = spans.files[low - 1]
        spans.last_view, spans.last_file = view, file
        spans.last_start, spans.last_end = spans.spans[low - 1, 0], spans.spans[low - 1, 1]
    spans.counts[file] += weight
    return 0
