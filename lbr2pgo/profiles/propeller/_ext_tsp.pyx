"""Blocks in the order that lets the most weight fall through (ext-TSP).

Newell and Pupyrev, "Improved Basic Block Reordering", IEEE TC 2020; weights and limits are those of
LLVM 22: lib/Transforms/Utils/CodeLayout.cpp.

Every block begins as a chain of its own. The pair of chains whose merging gains most is merged,
until none gains anything: one behind the other or, where the first is short, into a cut of it.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc

cdef enum:
    FORWARD = 1024  # bytes that a jump may lead on to count as near
    BACKWARD = 640
    LONGEST_CHAIN = 512  # blocks
    # What a merged chain is made of, of which X is cut into two parts
    X_Y = 0
    X1_Y_X2 = 1
    Y_X2_X1 = 2
    X2_X1_Y = 3

cdef double NEAR = 0.1
cdef double ONLY_WAY = 1.05
cdef double NOTHING = 1e-8


cdef inline double _gain(
    uint64_t source, uint64_t size, uint64_t target, double weight, bint is_only
) noexcept nogil:
    cdef uint64_t end = source + size
    if end == target:
        return weight * (ONLY_WAY if is_only else 1.0)
    if end < target:
        if target - end <= FORWARD:
            return weight * NEAR * (1.0 - <double>(target - end) / FORWARD)
    elif end - target <= BACKWARD:
        return weight * NEAR * (1.0 - <double>(end - target) / BACKWARD)
    return 0.0


def score(
    const uint64_t[::1] address, const uint64_t[::1] size, const int64_t[::1] source,
    const int64_t[::1] target, const uint64_t[::1] weight, const int64_t[::1] outs,
):
    cdef double total = 0
    cdef Py_ssize_t i
    cdef int64_t a
    with nogil:
        for i in range(source.shape[0]):
            a = source[i]
            total += _gain(address[a], size[a], address[target[i]], <double>weight[i], outs[a] == 1)
    return total


cdef struct Merge:
    double gain
    int64_t first  # chains, by their numbers, and in which state they were
    int64_t second
    int64_t first_state
    int64_t second_state
    int64_t cut
    int how


cdef inline bint _is_before(const Merge *a, const Merge *b) noexcept nogil:
    """The larger gain first; of equals the one that stands first in the function."""
    if a.gain != b.gain:
        return a.gain > b.gain
    if a.first != b.first:
        return a.first < b.first
    return a.second < b.second


cdef class _Layout:
    """The chains of one call; numbers of blocks are those of the call."""

    cdef const uint64_t[::1] size, weight
    cdef const int64_t[::1] source, target
    cdef int64_t[::1] chain, following, head, length, state, mark
    cdef int64_t[::1] out_first, out_edges, in_first, in_edges, outs
    cdef int64_t[::1] members, place, order, near, neighbours
    cdef uint64_t[::1] address
    cdef double[::1] inner
    cdef Py_ssize_t near_count
    cdef int64_t round_
    # A heap whose size no array made beforehand could have; indices are below `merges`.
    cdef Merge *heap
    cdef Py_ssize_t merges, room

    def __init__(self, size, source, target, weight):
        blocks, edges = len(size), len(source)
        self.size, self.weight = size, weight
        self.source, self.target = source, target
        self.chain, self.head = np.arange(blocks), np.arange(blocks)
        self.following = np.full(blocks, -1)
        self.length = np.ones(blocks, np.int64)
        self.state, self.mark = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
        self.inner, self.address = np.zeros(blocks), np.zeros(blocks, np.uint64)
        self.out_first, self.out_edges = _by(source, blocks)
        self.in_first, self.in_edges = _by(target, blocks)
        self.outs = np.diff(self.out_first)
        self.members, self.place = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
        self.order = np.empty(blocks, np.int64)
        self.near, self.neighbours = np.empty(edges, np.int64), np.empty(blocks, np.int64)
        self.heap, self.merges, self.room, self.round_ = NULL, 0, 0, 0

    def __dealloc__(self):
        free(self.heap)

    # The heap

    cdef int _push(self, Merge *merge) except -1 nogil:
        cdef Py_ssize_t at, above
        cdef Merge *grown
        if self.merges == self.room:
            grown = <Merge *>realloc(self.heap, (2 * self.room + 64) * sizeof(Merge))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.heap, self.room = grown, 2 * self.room + 64
        at = self.merges
        self.merges += 1
        while at > 0:
            above = (at - 1) // 2
            if not _is_before(merge, &self.heap[above]):
                break
            self.heap[at] = self.heap[above]
            at = above
        self.heap[at] = merge[0]
        return 0

    cdef Merge _pop(self) noexcept nogil:
        cdef Merge best = self.heap[0], last
        cdef Py_ssize_t at = 0, below
        self.merges -= 1
        last = self.heap[self.merges]
        while 2 * at + 1 < self.merges:
            below = 2 * at + 1
            if below + 1 < self.merges and _is_before(&self.heap[below + 1], &self.heap[below]):
                below += 1
            if not _is_before(&self.heap[below], &last):
                break
            self.heap[at] = self.heap[below]
            at = below
        self.heap[at] = last
        return best

    # Merging

    cdef int _list(self, int64_t x, int64_t y) except -1 nogil:
        """The blocks of both chains, and the edges that a merge may change."""
        cdef int64_t block, edge, other, i, n = 0
        block = self.head[x]
        while block >= 0:
            self.members[n], self.place[block] = block, n
            n += 1
            block = self.following[block]
        block = self.head[y]
        while block >= 0:
            self.members[n] = block
            n += 1
            block = self.following[block]
        self.near_count = 0
        for i in range(n):
            block = self.members[i]
            for edge in range(self.out_first[block], self.out_first[block + 1]):
                other = self.chain[self.target[self.out_edges[edge]]]
                if other == x or (other == y and i < self.length[x]):
                    self.near[self.near_count] = self.out_edges[edge]
                    self.near_count += 1
        return 0

    cdef int _arrange(self, int64_t x, int64_t y, int64_t cut, int how) except -1 nogil:
        """Put the listed blocks into `order`."""
        cdef int64_t nx = self.length[x], ny = self.length[y], i, n = 0
        cdef int64_t[3] begin, end
        if how == X_Y:
            begin[0], end[0], begin[1], end[1], begin[2], end[2] = 0, nx + ny, 0, 0, 0, 0
        elif how == X1_Y_X2:
            begin[0], end[0], begin[1], end[1], begin[2], end[2] = 0, cut, nx, nx + ny, cut, nx
        elif how == Y_X2_X1:
            begin[0], end[0], begin[1], end[1], begin[2], end[2] = nx, nx + ny, cut, nx, 0, cut
        else:
            begin[0], end[0], begin[1], end[1], begin[2], end[2] = cut, nx, 0, cut, nx, nx + ny
        cdef int part
        for part in range(3):
            for i in range(begin[part], end[part]):
                self.order[n] = self.members[i]
                n += 1
        return 0

    cdef double _merged(self, int64_t x, int64_t y) except? -1 nogil:
        """What the listed edges gain in the order."""
        cdef uint64_t at = 0
        cdef int64_t i, block, edge
        cdef double total = 0
        for i in range(self.length[x] + self.length[y]):
            block = self.order[i]
            self.address[block] = at
            at += self.size[block]
        for i in range(self.near_count):
            edge = self.near[i]
            block = self.source[edge]
            total += _gain(
                self.address[block], self.size[block], self.address[self.target[edge]],
                <double>self.weight[edge], self.outs[block] == 1,
            )
        return total

    cdef int _try(self, Merge *best, int64_t entry, int64_t cut, int how) except -1 nogil:
        cdef double gain
        self._arrange(best.first, best.second, cut, how)
        if self.order[0] != entry and entry >= 0:
            return 0
        gain = self._merged(best.first, best.second) - self.inner[best.first]
        if gain > best.gain + NOTHING:
            best.gain, best.cut, best.how = gain, cut, how
        return 0

    cdef int _try_cuts(self, Merge *best, int64_t entry) except -1 nogil:
        """Cut the first chain behind a block that leads to the second, or before one that it leads
        to: elsewhere nothing would fall through that does not already."""
        cdef int64_t x = best.first, first, last, i, block
        first = self.members[self.length[x]]
        last = self.members[self.length[x] + self.length[best.second] - 1]
        for i in range(self.in_first[first], self.in_first[first + 1]):
            block = self.source[self.in_edges[i]]
            if self.chain[block] == x and self.place[block] + 1 < self.length[x]:
                self._try(best, entry, self.place[block] + 1, X1_Y_X2)
                self._try(best, entry, self.place[block] + 1, X2_X1_Y)
        for i in range(self.out_first[last], self.out_first[last + 1]):
            block = self.target[self.out_edges[i]]
            if self.chain[block] == x and self.place[block] > 0:
                self._try(best, entry, self.place[block], X1_Y_X2)
                self._try(best, entry, self.place[block], Y_X2_X1)
        return 0

    cdef int _judge(self, int64_t x, int64_t y, int64_t entry) except -1 nogil:
        """Push the best way to merge two chains, if any gains something."""
        cdef Merge best
        if self.length[x] + self.length[y] > LONGEST_CHAIN:
            return 0
        if self.chain[entry] != x and self.chain[entry] != y:
            entry = -1
        best.gain, best.first, best.second, best.cut, best.how = 0, x, y, 0, X_Y
        self._list(x, y)
        self._try(&best, entry, 0, X_Y)
        self._try_cuts(&best, entry)
        if best.gain > NOTHING:
            best.first_state, best.second_state = self.state[x], self.state[y]
            self._push(&best)
        return 0

    cdef int _merge(self, int64_t x, int64_t y, int64_t cut, int how) except -1 nogil:
        """Make one chain of two, under the first one's number."""
        cdef int64_t i, n = self.length[x] + self.length[y]
        self._list(x, y)
        self._arrange(x, y, cut, how)
        self.inner[x] = self._merged(x, y) + self.inner[y]
        for i in range(n):
            self.chain[self.order[i]] = x
            self.following[self.order[i]] = self.order[i + 1] if i + 1 < n else -1
        self.head[x] = self.order[0]
        self.length[x], self.length[y] = n, 0
        self.state[x] += 1
        self.state[y] += 1
        return 0

    cdef int _judge_around(self, int64_t x, int64_t entry) except -1 nogil:
        """Push the merges of a chain with each chain that an edge connects it to."""
        cdef int64_t block, i, edge, other, n = 0
        self.round_ += 1
        self.mark[x] = self.round_
        block = self.head[x]
        while block >= 0:
            for i in range(self.out_first[block], self.out_first[block + 1]):
                other = self.chain[self.target[self.out_edges[i]]]
                if self.mark[other] != self.round_:
                    self.mark[other] = self.round_
                    self.neighbours[n] = other
                    n += 1
            for i in range(self.in_first[block], self.in_first[block + 1]):
                other = self.chain[self.source[self.in_edges[i]]]
                if self.mark[other] != self.round_:
                    self.mark[other] = self.round_
                    self.neighbours[n] = other
                    n += 1
            block = self.following[block]
        for i in range(n):
            self._judge(x, self.neighbours[i], entry)
            self._judge(self.neighbours[i], x, entry)
        return 0

    cdef int _force(self, int64_t begin, int64_t end) except -1 nogil:
        """Merge blocks that are each other's only way on and only way in."""
        cdef int64_t block, other
        for block in range(begin, end):
            if self.outs[block] != 1:
                continue
            other = self.target[self.out_edges[self.out_first[block]]]
            if other == begin or self.in_first[other + 1] - self.in_first[other] != 1:
                continue
            if self.chain[block] != self.chain[other]:
                self._merge(self.chain[block], self.chain[other], 0, X_Y)
        return 0

    cdef int lay_out(self, int64_t begin, int64_t end) except -1 nogil:
        """Merge the chains of one function, whose entry is its first block."""
        cdef int64_t block
        cdef Merge best
        self.merges = 0
        self._force(begin, end)
        for block in range(begin, end):
            if self.length[block]:
                self._judge_first(block, begin)
        while self.merges:
            best = self._pop()
            if self.state[best.first] != best.first_state:
                continue
            if self.state[best.second] != best.second_state:
                continue
            self._merge(best.first, best.second, best.cut, best.how)
            self._judge_around(best.first, begin)
        return 0

    cdef int _judge_first(self, int64_t x, int64_t entry) except -1 nogil:
        """As `_judge_around`, but each pair once: with chains that stand behind it."""
        cdef int64_t block, i, other
        self.round_ += 1
        block = self.head[x]
        while block >= 0:
            for i in range(self.out_first[block], self.out_first[block + 1]):
                other = self.chain[self.target[self.out_edges[i]]]
                if other != x and self.mark[other] != self.round_:
                    self.mark[other] = self.round_
                    self._judge(x, other, entry)
                    if not self._leads_to(other, x):
                        self._judge(other, x, entry)
            block = self.following[block]
        return 0

    cdef bint _leads_to(self, int64_t x, int64_t y) except -1 nogil:
        cdef int64_t block = self.head[x], i
        while block >= 0:
            for i in range(self.out_first[block], self.out_first[block + 1]):
                if self.chain[self.target[self.out_edges[i]]] == y:
                    return True
            block = self.following[block]
        return False

    cdef int collect(self, const int64_t[::1] chains, int64_t[::1] out) except -1 nogil:
        """The blocks of these chains."""
        cdef int64_t i, block, at = 0
        for i in range(chains.shape[0]):
            block = self.head[chains[i]]
            while block >= 0:
                out[at] = block
                at += 1
                block = self.following[block]
        return 0


def _by(blocks, size):
    """Edges by one of their ends: where those of each block begin, and their numbers."""
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(blocks, minlength=size), out=first[1:])
    return first, np.argsort(blocks, kind="stable")


def layout(function, size, count, offsets, source, target, weight):
    function, offsets = np.asarray(function), np.asarray(offsets)
    owner = np.repeat(np.arange(len(function) - 1), np.diff(offsets))
    for end in (source, target):
        if ((end < function[owner]) | (end >= function[owner + 1])).any():
            raise IndexError("an edge leaves its function")
    kept = source != target
    cdef _Layout chains = _Layout(size, source[kept], target[kept], weight[kept])
    cdef const int64_t[::1] begins = function
    cdef Py_ssize_t i
    with nogil:
        for i in range(begins.shape[0] - 1):
            chains.lay_out(begins[i], begins[i + 1])
    out = np.empty(len(size), np.int64)
    chain = np.asarray(chains.chain)
    counts = np.bincount(chain, np.asarray(count, np.float64), len(size))
    sizes = np.bincount(chain, np.asarray(size, np.float64), len(size))
    density = counts / np.maximum(sizes, 1.0)
    roots = np.flatnonzero(np.asarray(chains.length) > 0)
    of = np.searchsorted(function, roots, side="right") - 1
    is_entry = chain[function[of]] == roots
    heads = np.asarray(chains.head)[roots]
    roots = roots[np.lexsort((heads, -density[roots], ~is_entry, of))]
    chains.collect(roots, out)
    return out
