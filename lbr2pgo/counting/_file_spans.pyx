"""Where files are mapped, for the loop that counts traces; the search stands in file_spans.pxd."""

from libc.stdint cimport int64_t, uint64_t


cdef class FileSpans:
    def __init__(
        self,
        const int64_t[::1] views,
        const int64_t[::1] offsets,
        const uint64_t[:, ::1] spans,
        const int64_t[::1] files,
        uint64_t[::1] counts,
    ):
        if spans.shape[1] != 2:
            raise ValueError("spans have two columns")
        self.views, self.offsets, self.spans = views, offsets, spans
        self.files, self.counts = files, counts
        self.last_view = self.last_file = 0
        self.last_start = self.last_end = 0
