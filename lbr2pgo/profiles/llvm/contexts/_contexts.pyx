"""Calling contexts: sequences of call sites, without the repeats that recursion makes.

Also what callers know of what was inlined into them, and in which order LLVM takes functions.
"""

cimport cython
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.sums cimport saturating

cdef enum:
    C_MOST_WORK = 1 << 20
    C_NO_LIMIT = -1
    C_INTO_UNKNOWN = -2
    NO_CONTEXT = -1  # the row of no function
    ROOT = 0
    C_NO_SITE = -1

MOST_WORK = C_MOST_WORK
NO_LIMIT = C_NO_LIMIT
INTO_UNKNOWN = C_INTO_UNKNOWN

cdef uint64_t NO_LINE = <uint64_t>-1  # that of `columns`


cdef int _has_repeat(
    int64_t[::1] frames, Py_ssize_t size, Py_ssize_t window
) except -1 nogil:
    """Whether there are two equal neighbours of `window` frames each.

    As many frames in a row then equal those `window` before them, and one of them stands at a
    multiple of it: so few places have to be looked at.
    """
    cdef Py_ssize_t i = window, first, past
    while i < size:
        first, past = i, i
        while past < size and frames[past] == frames[past - window]:
            past += 1
        while past > i and first > window and frames[first - 1] == frames[first - 1 - window]:
            first -= 1
        if past - first >= window:
            return True
        i += window
    return False


cdef Py_ssize_t _without_repeats(
    int64_t[::1] frames, Py_ssize_t size, Py_ssize_t window
) except -1 nogil:
    """Drop the second of two equal neighbours of `window` frames each, from left to right."""
    cdef Py_ssize_t i, kept = window, equal = 0
    cdef int64_t frame
    for i in range(window, size):
        frame = frames[i]
        # What was dropped before is a multiple of the window, so this one is not overwritten yet.
        equal = equal + 1 if frame == frames[i - window] else 0
        frames[kept] = frame
        kept += 1
        if equal == window:
            kept -= window
            equal = 0
    return kept


cdef Py_ssize_t _compressed(
    int64_t[::1] frames, Py_ssize_t size, Py_ssize_t longest
) except -1 nogil:
    cdef Py_ssize_t window = 1, most = size // 2
    if longest != C_NO_LIMIT:
        most = min(most, longest)
    if size > 0:
        most = min(most, max(C_MOST_WORK // size, 1))
    while window <= most:
        if _has_repeat(frames, size, window):
            size = _without_repeats(frames, size, window)
            most = min(most, size // 2)
        window += 1
    return size


cdef Py_ssize_t _shortened(
    int64_t[::1] frames, Py_ssize_t size, Py_ssize_t longest, Py_ssize_t depth
) except -1 nogil:
    """Compress, and move the innermost `depth` frames to the front."""
    cdef Py_ssize_t i
    size = _compressed(frames, size, longest)
    if depth == C_NO_LIMIT or depth >= size:
        return size
    for i in range(depth):
        frames[i] = frames[size - depth + i]
    return depth


def compress(int64_t[::1] frames, Py_ssize_t longest):
    return _compressed(frames, frames.shape[0], longest)


cdef int _reverse(int64_t[::1] frames, Py_ssize_t size) except -1 nogil:
    cdef Py_ssize_t i
    for i in range(size // 2):
        frames[i], frames[size - 1 - i] = frames[size - 1 - i], frames[i]
    return 0


@cython.final
cdef class ContextKeys:
    cdef readonly RowIds contexts
    cdef const int64_t[:, ::1] callers
    cdef const int64_t[:, ::1] inlined
    cdef const uint64_t[:, ::1] frames
    cdef int64_t[::1] path
    cdef Py_ssize_t longest, depth
    cdef bint is_cut, is_at_unknown

    def __init__(
        self, const int64_t[:, ::1] callers, const int64_t[:, ::1] inlined,
        const uint64_t[:, ::1] frames, Py_ssize_t most_frames, Py_ssize_t longest,
        Py_ssize_t depth, bint is_cut,
    ):
        self.callers, self.inlined, self.frames = callers, inlined, frames
        self.path = np.empty(most_frames, np.int64)
        self.longest, self.depth, self.is_cut = longest, depth, is_cut
        self.contexts = RowIds()
        self.contexts.number(NO_CONTEXT, 0, 0)

    def number(self, const int64_t[::1] node, const int64_t[::1] inline):
        cdef int64_t[::1] found = np.empty(node.shape[0], np.int64)
        cdef Py_ssize_t k
        with nogil:
            for k in range(node.shape[0]):
                found[k] = self._number(node[k], inline[k])
        return np.asarray(found)

    cdef int64_t _number(self, int64_t node, int64_t inline) except -2 nogil:
        cdef Py_ssize_t i, size = self._outer_frames(inline, 0)
        cdef int64_t context = 0, caller
        cdef uint64_t location = 0
        while node > ROOT and not self.is_at_unknown:
            caller = self.callers[node, 1]
            if caller < 0:
                if self.is_cut:
                    break
                return -1
            size = self._outer_frames(caller, self._add(self.callers[node, 2], size))
            node = self.callers[node, 0]
        _reverse(self.path, size)
        size = _shortened(self.path, size, self.longest, self.depth)
        for i in range(size):
            context = self.contexts.number(context, location, self.frames[self.path[i], 0])
            location = self.frames[self.path[i], 1]
        return self.contexts.number(context, location, self.inlined[inline, 2])

    cdef Py_ssize_t _outer_frames(self, int64_t inline, Py_ssize_t size) except -1 nogil:
        """Add the frames that an inlined function was inlined into; how many there are now."""
        while self.inlined[inline, 0] >= 0:
            size = self._add(self.inlined[inline, 1], size)
            inline = self.inlined[inline, 0]
        self.is_at_unknown = self.inlined[inline, 0] == C_INTO_UNKNOWN
        return size

    cdef Py_ssize_t _add(self, int64_t frame, Py_ssize_t size) except -1 nogil:
        if size == self.path.shape[0]:
            return size
        self.path[size] = frame
        return size + 1


@cython.final
cdef class CallPaths:
    cdef readonly RowIds nodes
    cdef const int64_t[:, ::1] callers
    cdef const int64_t[::1] function_of
    cdef RowIds gaps
    cdef const int64_t[::1] gap_offsets
    cdef const int64_t[::1] gap_sites
    cdef int64_t[::1] path
    cdef Py_ssize_t longest, depth

    def __init__(
        self, const int64_t[:, ::1] callers, const int64_t[::1] function_of, RowIds gaps,
        const int64_t[::1] gap_offsets, const int64_t[::1] gap_sites, Py_ssize_t most_frames,
        Py_ssize_t longest, Py_ssize_t depth,
    ):
        self.callers, self.function_of, self.gaps = callers, function_of, gaps
        self.gap_offsets, self.gap_sites = gap_offsets, gap_sites
        self.path = np.empty(most_frames, np.int64)
        self.longest, self.depth = longest, depth
        self.nodes = RowIds()
        self.nodes.number(ROOT, C_NO_SITE, 0)

    def number(self, const int64_t[::1] node, const int64_t[::1] function):
        cdef int64_t[::1] found = np.empty(node.shape[0], np.int64)
        cdef Py_ssize_t k
        with nogil:
            for k in range(node.shape[0]):
                found[k] = self._number(node[k], <uint64_t>function[k])
        return np.asarray(found)

    cdef int64_t _number(self, int64_t node, uint64_t function) except -1 nogil:
        cdef Py_ssize_t i, size = 0
        cdef int64_t found = ROOT
        while node > ROOT and size < self.path.shape[0]:
            self.path[size] = self.callers[node, 1]
            size += 1
            node = self.callers[node, 0]
        _reverse(self.path, size)
        size = _shortened(self.path, size, self.longest, self.depth)
        for i in range(size):
            found = self._step(
                found, self.path[i],
                <uint64_t>self.function_of[self.path[i + 1]] if i + 1 < size else function,
            )
        return found

    cdef int64_t _step(self, int64_t node, int64_t site, uint64_t function) except -1 nogil:
        """The node of a call in another one, and of what is missing behind it."""
        cdef Py_ssize_t gap = self.gaps.find(<uint64_t>site, function, 0), i
        node = self.nodes.number(node, <uint64_t>site, 0)
        if gap >= 0:
            for i in range(self.gap_offsets[gap], self.gap_offsets[gap + 1]):
                node = self.nodes.number(node, <uint64_t>self.gap_sites[i], 0)
        return node


def strong_components(const int64_t[::1] offsets, const int64_t[::1] targets):
    cdef Py_ssize_t size = offsets.shape[0] - 1
    cdef int64_t[::1] number = np.zeros(size, np.int64)  # of the visit; 0 before it
    cdef int64_t[::1] lowest = np.zeros(size, np.int64)
    cdef int64_t[::1] edge = np.zeros(size, np.int64)
    cdef int64_t[::1] visits = np.empty(size, np.int64)
    cdef int64_t[::1] waiting = np.empty(size, np.int64)
    cdef int64_t[::1] order = np.empty(size, np.int64)
    cdef int64_t[::1] component = np.empty(size, np.int64)
    cdef Py_ssize_t depth, open_nodes = 0, done = 0, visited = 0, components = 0, start
    cdef int64_t node, target
    with nogil:
        for start in range(size):
            if number[start]:
                continue
            depth = 0
            node = start
            while True:
                if number[node] == 0:
                    visited += 1
                    number[node] = lowest[node] = visited
                    edge[node] = offsets[node]
                    visits[depth], waiting[open_nodes] = node, node
                    depth += 1
                    open_nodes += 1
                if edge[node] < offsets[node + 1]:
                    target = targets[edge[node]]
                    edge[node] += 1
                    if number[target] == 0:
                        node = target
                    elif number[target] > 0:
                        lowest[node] = min(lowest[node], number[target])
                    continue
                depth -= 1
                if lowest[node] == number[node]:
                    while True:
                        open_nodes -= 1
                        target = waiting[open_nodes]
                        number[target] = -1  # in a component
                        order[done], component[done] = target, components
                        done += 1
                        if target == node:
                            break
                    components += 1
                if depth == 0:
                    break
                target = visits[depth - 1]
                if number[node] > 0:
                    lowest[target] = min(lowest[target], lowest[node])
                node = target
    return np.asarray(order), np.asarray(component)


def infer_calls(
    RowIds contexts, uint8_t[::1] has_samples, const uint64_t[::1] head, uint64_t[::1] total,
    uint64_t[::1] first, uint64_t[::1] first_count, bint of_silent_alone,
):
    cdef const uint8_t[::1] was_seen = np.array(has_samples)
    cdef uint8_t[::1] is_told = np.zeros(has_samples.shape[0], np.uint8)
    cdef uint64_t[::1] told = np.zeros(has_samples.shape[0], np.uint64)
    cdef Py_ssize_t context
    cdef uint64_t caller, location, count
    with nogil:
        for context in range(has_samples.shape[0] - 1, 0, -1):
            caller, location = contexts.keys[context, 0], contexts.keys[context, 1]
            if not has_samples[context] or head[context] or caller == 0:
                continue
            if of_silent_alone and was_seen[caller]:
                continue
            count = first_count[context]
            if count == 0 and (first[context] == NO_LINE or total[context]):
                count = 1
            is_told[context], told[context] = True, count
            has_samples[caller] = 1
            total[caller] = saturating(total[caller], count)
            if location < first[caller]:
                first[caller], first_count[caller] = location, count
            elif location == first[caller]:
                first_count[caller] = saturating(first_count[caller], count)
    rows = np.flatnonzero(is_told)
    return rows, np.asarray(told)[rows]
