"""Loops of a graph of blocks: strongly connected pieces (R. Tarjan, SIAM J. Comput. 1, 1972)."""

import numpy as np

from libc.stdint cimport int64_t


cdef class _Search:
    """A depth-first search, its call stack in `path`."""

    cdef const int64_t[::1] first
    cdef const int64_t[::1] target
    cdef int64_t[::1] loop_of
    # Of each block: when it was met (0: not yet), the earliest one that it leads to among those whose
    # piece is still open, and which of its edges is next.
    cdef int64_t[::1] met
    cdef int64_t[::1] low
    cdef int64_t[::1] edge
    cdef int64_t[::1] path
    cdef int64_t[::1] open_
    cdef Py_ssize_t depth
    cdef Py_ssize_t opened
    cdef Py_ssize_t time
    cdef Py_ssize_t loops

    def __init__(self, const int64_t[::1] first, const int64_t[::1] target, int64_t[::1] loop_of):
        cdef Py_ssize_t size = loop_of.shape[0]
        self.first, self.target, self.loop_of = first, target, loop_of
        self.met, self.low, self.path, self.open_ = np.zeros((4, size), np.int64)
        self.edge = np.array(first[:size])
        self.depth = self.opened = self.time = self.loops = 0

    cdef int enter(self, int64_t block) except -1 nogil:
        self.time += 1
        self.met[block] = self.low[block] = self.time
        self.path[self.depth] = self.open_[self.opened] = block
        self.depth += 1
        self.opened += 1
        return 0

    cdef int leave(self, int64_t block) except -1 nogil:
        """All edges of a block were followed: close its piece if it is the first of it."""
        cdef int64_t one, number = -1
        self.depth -= 1
        if self.depth:
            one = self.path[self.depth - 1]
            self.low[one] = min(self.low[one], self.low[block])
        if self.low[block] != self.met[block]:
            return 0
        if self.open_[self.opened - 1] != block or self.leads_to_itself(block):
            number = self.loops
            self.loops += 1
        while True:
            self.opened -= 1
            one = self.open_[self.opened]
            self.loop_of[one] = number
            self.low[one] = self.time + self.loop_of.shape[0]  # closed: it is nobody's earliest
            if one == block:
                return 0

    cdef bint leads_to_itself(self, int64_t block) except -1 nogil:
        cdef int64_t e
        for e in range(self.first[block], self.first[block + 1]):
            if self.target[e] == block:
                return True
        return False

    cdef int follow(self, int64_t root) except -1 nogil:
        cdef int64_t block, to
        self.enter(root)
        while self.depth:
            block = self.path[self.depth - 1]
            if self.edge[block] == self.first[block + 1]:
                self.leave(block)
                continue
            to = self.target[self.edge[block]]
            self.edge[block] += 1
            if self.met[to] == 0:
                self.enter(to)
            elif self.low[to] <= self.time:
                self.low[block] = min(self.low[block], self.met[to])
        return 0


def number_loops(const int64_t[::1] first, const int64_t[::1] target):
    cdef Py_ssize_t size = first.shape[0] - 1
    cdef int64_t block
    loop_of = np.full(size, -1, np.int64)
    cdef _Search search = _Search(first, target, loop_of)
    with nogil:
        for block in range(size):
            if search.met[block] == 0:
                search.follow(block)
    return loop_of
