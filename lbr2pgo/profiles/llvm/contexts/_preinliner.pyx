"""Which calls are worth inlining in which context, and what becomes of all other contexts.

LLVM: tools/llvm-profgen/CSPreInliner.cpp, lib/Transforms/IPO/SampleContextTracker.cpp.
"""

cimport cython
import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from lbr2pgo.native.growing cimport Growing, add, growing, release
from lbr2pgo.native.row_ids cimport RowIds, RowSums
from lbr2pgo.native.sums cimport saturating

cdef enum:
    ROOT = 0
    NONE = -1
    C_LOST = -2
    DEEPEST_AS_LLVM = 4096
    BIT_WAS_INLINED = 1
    BIT_SHOULD_BE_INLINED = 2
    # LLVM: ProfileInlineGrowthLimit and others, in SampleProfile.cpp and CSPreInliner.cpp.
    GROWTH = 12
    LEAST_LIMIT = 100
    LARGEST_LIMIT = 50_000
    HOT_SIZE = 1500
    PREFERENCE = 100
    LONG_CALL = 300

WAS_INLINED, SHOULD_BE_INLINED = BIT_WAS_INLINED, BIT_SHOULD_BE_INLINED
LOST = C_LOST


cdef struct Candidate:
    uint64_t count
    uint64_t size
    uint64_t guid
    uint64_t hash
    int64_t node


cdef struct Pair:
    int64_t source
    int64_t target


cdef bint _is_worse(const Candidate *a, const Candidate *b) noexcept nogil:
    """Whether a candidate is looked at behind another one."""
    if (a.size == 0) != (b.size == 0):
        return b.size == 0
    if a.count != b.count:
        return a.count < b.count
    if a.size != b.size:
        return a.size > b.size
    return a.guid < b.guid


# Which of two equal candidates comes first is a matter of the heap, so this one is as that of the
# C++ library which llvm-profgen is built with (libstdc++: bits/stl_heap.h).

cdef int _rise(Candidate *rows, Py_ssize_t at, Candidate candidate) noexcept nogil:
    """Put a candidate into a free place, or into one above it."""
    cdef Py_ssize_t above
    while at > 0:
        above = (at - 1) // 2
        if not _is_worse(&rows[above], &candidate):
            break
        rows[at] = rows[above]
        at = above
    rows[at] = candidate
    return 0


cdef int _push(Growing *heap, Candidate candidate) except -1 nogil:
    add(heap)
    _rise(<Candidate *>heap.data, heap.count - 1, candidate)
    return 0


cdef Candidate _pop(Growing *heap) noexcept nogil:
    cdef Candidate *rows = <Candidate *>heap.data
    cdef Candidate first = rows[0]
    cdef Py_ssize_t at = 0, below
    heap.count -= 1
    while 2 * at + 1 < heap.count:  # the better one rises, down to the last level
        below = 2 * at + 2
        if below == heap.count or _is_worse(&rows[below], &rows[below - 1]):
            below -= 1
        rows[at] = rows[below]
        at = below
    _rise(rows, at, rows[heap.count])
    return first


cdef int _by_hash(const void *a, const void *b) noexcept nogil:
    cdef uint64_t one = (<const Candidate *>a).hash, other = (<const Candidate *>b).hash
    return (one > other) - (one < other)


def _longer(column):
    """The same with as much room again."""
    return np.concatenate((column, column))


@cython.final
cdef class FunctionSizes:
    cdef RowIds nodes
    cdef int64_t[::1] size
    cdef int64_t[::1] first_child

    def __init__(self, RowIds nodes, const int64_t[::1] size, const int64_t[::1] first_child):
        self.nodes, self.size, self.first_child = nodes, np.array(size), np.array(first_child)

    cdef int64_t _of_any(self, int64_t node) except -1 nogil:
        """The size of a function in some context."""
        while self.size[node] < 0 and self.first_child[node] >= 0:
            node = self.first_child[node]
        return max(self.size[node], 0)


@cython.final
cdef class ContextTrie:
    cdef Py_ssize_t used
    # Of nodes; samples have the number of the node that had them first.
    cdef int64_t[::1] parent
    cdef uint64_t[::1] location
    cdef uint64_t[::1] function
    cdef int64_t[::1] first_child
    cdef int64_t[::1] next_sibling
    cdef int64_t[::1] sibling_before
    cdef int64_t[::1] samples
    cdef RowSums places  # (parent, location, function): the node there and one; 0 for none
    # Of samples.
    cdef int64_t[::1] node_of
    cdef int64_t[::1] merged_into
    cdef uint64_t[::1] head
    cdef uint64_t[::1] total
    cdef uint64_t[::1] first_line
    cdef uint64_t[::1] first_count
    cdef uint8_t[::1] attributes
    cdef uint8_t[::1] is_inlined
    cdef RowSums calls  # (samples, location, function)
    cdef int64_t[::1] first_call
    cdef int64_t[::1] next_call
    cdef FunctionSizes sizes
    cdef const uint64_t[::1] guids
    cdef uint64_t cold
    cdef uint64_t hot
    cdef bint as_llvm

    def __init__(
        self, const int64_t[::1] parent, const uint64_t[::1] location,
        const uint64_t[::1] function, const uint8_t[::1] has_samples, const uint64_t[::1] head,
        const uint64_t[::1] total, const uint64_t[::1] first_line,
        const uint64_t[::1] first_count, const uint8_t[::1] attributes,
    ):
        cdef Py_ssize_t size = parent.shape[0], node
        self.used = size
        self.parent, self.location = np.array(parent), np.array(location)
        self.function = np.array(function)
        self.head, self.total = np.array(head), np.array(total)
        self.first_line, self.first_count = np.array(first_line), np.array(first_count)
        self.attributes, self.is_inlined = np.array(attributes), np.zeros(size, np.uint8)
        self.first_child, self.next_sibling, self.sibling_before, self.first_call, self.merged_into = (
            np.full((5, size), NONE, np.int64)
        )
        self.node_of = np.arange(size)
        self.samples = np.where(has_samples, self.node_of, NONE)
        self.places, self.calls = RowSums(), RowSums()
        self.next_call = np.full(1, NONE, np.int64)
        with nogil:
            for node in range(1, size):
                self._hang(node, parent[node])

    def add_calls(
        self, const int64_t[::1] samples, const uint64_t[::1] location,
        const uint64_t[::1] callee, const uint64_t[::1] count,
    ):
        cdef Py_ssize_t i
        with nogil:
            for i in range(samples.shape[0]):
                self._add_call(samples[i], location[i], callee[i], count[i])

    def call_weights(self):
        cdef uint64_t[::1] weights = np.zeros(self.parent.shape[0], np.uint64)
        cdef Py_ssize_t node
        with nogil:
            for node in range(1, self.parent.shape[0]):
                if self.samples[node] >= 0 and self.samples[self.parent[node]] >= 0:
                    weights[node] = self._count(node)
        return np.asarray(weights)

    def inline(
        self, const int64_t[::1] order, const int64_t[::1] offsets,
        const int64_t[::1] contexts, FunctionSizes sizes, const uint64_t[::1] guids,
        uint64_t cold, uint64_t hot, bint as_llvm,
    ):
        cdef Growing heap = growing(sizeof(Candidate)), found = growing(sizeof(Candidate))
        cdef Growing pairs = growing(sizeof(Pair))
        cdef Py_ssize_t i
        cdef int64_t base, function
        self.sizes, self.guids, self.cold, self.hot = sizes, guids, cold, hot
        self.as_llvm = as_llvm
        try:
            with nogil:
                for i in range(order.shape[0]):
                    function = order[i]
                    base = self._base(
                        function, contexts[offsets[function] : offsets[function + 1]], &pairs
                    )
                    if base >= 0 and self.samples[base] >= 0:
                        self._inline_into(base, &heap, &found)
        finally:
            release(&heap)
            release(&found)
            release(&pairs)

    def result(self):
        """Nodes with samples that remain, parents first: see the stub."""
        cdef Py_ssize_t size = self.parent.shape[0], found = 1, at = 0
        cdef int64_t[::1] old = np.zeros(size, np.int64)
        cdef int64_t[::1] outer = np.full(size, NONE, np.int64)
        cdef int64_t child
        with nogil:
            while at < found:
                child = self.first_child[old[at]]
                while child >= 0:
                    old[found], outer[found] = child, at
                    found += 1
                    child = self.next_sibling[child]
                at += 1
        rows = np.asarray(old[:found])
        samples = np.asarray(self.samples)[rows]
        is_kept = (np.asarray(self.parent)[rows] == ROOT) | (
            np.append(self.is_inlined, 0)[samples] != 0
        )
        return (
            rows, np.asarray(outer[:found]), np.where(is_kept, samples, NONE),
            np.asarray(self.merged_into),
        )

    @property
    def locations(self):
        return np.asarray(self.location)

    @property
    def totals(self):
        return np.asarray(self.total)

    @property
    def heads(self):
        return np.asarray(self.head)

    @property
    def attribute_bits(self):
        return np.asarray(self.attributes)

    # Nodes.

    cdef int64_t _find(self, int64_t parent, uint64_t location, uint64_t function) except -2 nogil:
        cdef Py_ssize_t row = self.places.ids.find(parent, location, function)
        return NONE if row < 0 else <int64_t>self.places.sums[row] - 1

    cdef int _hang(self, int64_t node, int64_t parent) except -1 nogil:
        """Let a node be the first child of its parent."""
        cdef Py_ssize_t row = self.places.add(parent, self.location[node], self.function[node], 0)
        cdef int64_t sibling = self.first_child[parent]
        self.places.sums[row] = node + 1
        self.parent[node] = parent
        self.next_sibling[node], self.sibling_before[node] = sibling, NONE
        if sibling >= 0:
            self.sibling_before[sibling] = node
        self.first_child[parent] = node
        return 0

    cdef int _unhang(self, int64_t node) except -1 nogil:
        cdef int64_t parent = self.parent[node]
        cdef int64_t before = self.sibling_before[node], behind = self.next_sibling[node]
        if parent < 0:
            return 0
        self.parent[node] = NONE
        self.places.sums[
            self.places.ids.find(parent, self.location[node], self.function[node])
        ] = 0
        if before >= 0:
            self.next_sibling[before] = behind
        else:
            self.first_child[parent] = behind
        if behind >= 0:
            self.sibling_before[behind] = before
        return 0

    cdef int64_t _base(
        self, int64_t function, const int64_t[::1] contexts, Growing *pairs
    ) except -2 nogil:
        """The function without callers, into which contexts are merged that are not inlined."""
        cdef int64_t base = self._find(ROOT, 0, function), samples
        cdef Py_ssize_t i
        for i in range(contexts.shape[0]):
            samples = contexts[i]
            if self.is_inlined[samples] or self.merged_into[samples] != NONE:
                continue
            if self.node_of[samples] != base:
                base = self._promoted(self.node_of[samples], pairs)
        return base

    cdef int64_t _promoted(self, int64_t node, Growing *pairs) except -1 nogil:
        """Move a node and all below it to the root, or merge it with what is there."""
        cdef int64_t base = self._find(ROOT, 0, self.function[node])
        if base >= 0 and self.as_llvm:
            self._merge_as_llvm(node, base, self._is_inside(node, base), 0)
            self._unhang(node)
            return base
        self._unhang(node)
        if base < 0:
            self.location[node] = 0
            self._hang(node, ROOT)
            return node
        self._note(pairs, node, base)
        while pairs.count:
            pairs.count -= 1
            self._merge(&(<Pair *>pairs.data)[pairs.count], pairs)
        return base

    cdef int _note(self, Growing *pairs, int64_t source, int64_t target) except -1 nogil:
        cdef Pair *pair = <Pair *>add(pairs)
        pair.source, pair.target = source, target
        return 0

    cdef int _merge(self, const Pair *pair, Growing *pairs) except -1 nogil:
        """Merge a node into another one of the same function; its children follow."""
        cdef int64_t source = pair.source, target = pair.target, child, behind, there
        self._merge_samples(source, target)
        child = self.first_child[source]
        while child >= 0:
            behind = self.next_sibling[child]
            there = self._find(target, self.location[child], self.function[child])
            if there >= 0:
                self._note(pairs, child, there)
            else:
                self._unhang(child)
                self._hang(child, target)
            child = behind
        return 0

    cdef int _merge_as_llvm(
        self, int64_t source, int64_t target, bint is_inside, Py_ssize_t depth
    ) except -1 nogil:
        """Merge as LLVM does, which leaves the source and what is below it in their places.

        If that is inside of what it is merged with, children may find these places when they look
        for theirs.
        """
        cdef int64_t child, there
        cdef uint64_t hash = 0
        self._merge_samples(source, target)
        child = self._next_child(source, hash, True)
        while child >= 0 and depth < DEEPEST_AS_LLVM:
            hash = self._hash(child)
            there = self._find(target, self.location[child], self.function[child])
            if there >= 0:
                self._merge_as_llvm(child, there, is_inside, depth + 1)
            else:
                self._unhang(child)
                if is_inside:
                    self._leave_copy(child, source, 0)
                self._hang(child, target)
            child = self._next_child(source, hash, False)
        while self.first_child[source] >= 0:
            self._unhang(self.first_child[source])
        return 0

    cdef int _leave_copy(self, int64_t node, int64_t parent, Py_ssize_t depth) except -1 nogil:
        """Hang a copy of a node, and of all below it, under a parent; samples are shared."""
        cdef int64_t copy = self._new_node(), child = self.first_child[node]
        self.location[copy], self.function[copy] = self.location[node], self.function[node]
        self.samples[copy] = self.samples[node]
        self._hang(copy, parent)
        while child >= 0 and depth < DEEPEST_AS_LLVM:
            self._leave_copy(child, copy, depth + 1)
            child = self.next_sibling[child]
        return 0

    cdef int64_t _new_node(self) except -1 nogil:
        cdef Py_ssize_t size = self.parent.shape[0]
        if self.used == size:
            with gil:
                self.parent, self.first_child, self.next_sibling = (
                    _longer(self.parent), _longer(self.first_child), _longer(self.next_sibling)
                )
                self.sibling_before, self.samples = (
                    _longer(self.sibling_before), _longer(self.samples)
                )
                self.location, self.function = _longer(self.location), _longer(self.function)
        self.used += 1
        self.first_child[self.used - 1] = NONE
        return self.used - 1

    cdef int _is_inside(self, int64_t node, int64_t outer) except -1 nogil:
        while node > ROOT and node != outer:
            node = self.parent[node]
        return node == outer

    cdef int64_t _next_child(self, int64_t node, uint64_t hash, bint is_first) except -2 nogil:
        """The child with the next larger hash, -1 if there is none."""
        cdef int64_t child = self.first_child[node], found = NONE
        while child >= 0:
            if is_first or self._hash(child) > hash:
                if found < 0 or self._hash(child) < self._hash(found):
                    found = child
            child = self.next_sibling[child]
        return found

    cdef uint64_t _hash(self, int64_t node) except? 0 nogil:
        """As `trees.call_hashes`."""
        cdef uint64_t location = self.location[node]
        return self.guids[self.function[node]] + (location << 32 | location >> 32) * 33

    # Samples.

    cdef int _merge_samples(self, int64_t source_node, int64_t target_node) except -1 nogil:
        cdef int64_t source = self.samples[source_node], target = self.samples[target_node], row
        if source < 0:
            return 0
        if target < 0:
            self.samples[target_node] = source
            self.node_of[source] = target_node
            return 0
        self.merged_into[source] = target if self.merged_into[target] == NONE else C_LOST
        self.head[target] = saturating(self.head[target], self.head[source])
        self.total[target] = saturating(self.total[target], self.total[source])
        if self.first_line[source] < self.first_line[target]:
            self.first_line[target] = self.first_line[source]
            self.first_count[target] = self.first_count[source]
        elif self.first_line[source] == self.first_line[target]:
            self.first_count[target] = saturating(
                self.first_count[target], self.first_count[source]
            )
        self.attributes[target] |= self.attributes[source] & BIT_SHOULD_BE_INLINED
        row = self.first_call[source]
        while row >= 0:
            self._add_call(
                target, self.calls.ids.keys[row, 1], self.calls.ids.keys[row, 2],
                self.calls.sums[row],
            )
            row = self.next_call[row]
        return 0

    cdef int _add_call(
        self, int64_t samples, uint64_t location, uint64_t callee, uint64_t count
    ) except -1 nogil:
        cdef Py_ssize_t before = self.calls.ids.used
        cdef Py_ssize_t row = self.calls.add(samples, location, callee, count)
        if row < before:
            return 0
        if row >= self.next_call.shape[0]:
            with gil:
                self._grow_calls()
        self.next_call[row] = self.first_call[samples]
        self.first_call[samples] = row
        return 0

    cdef int _grow_calls(self) except -1:
        """Have room for twice as many calls; apart, since `_add_call` would take the GIL each time."""
        cdef Py_ssize_t size = self.next_call.shape[0]
        longer = np.full(2 * size, NONE, np.int64)
        longer[:size] = self.next_call
        self.next_call = longer
        return 0

    cdef uint64_t _entries(self, int64_t samples) except? 0 nogil:
        """How often a function was entered."""
        if self.head[samples]:
            return self.head[samples]
        if self.first_count[samples]:
            return self.first_count[samples]
        return self.total[samples] > 0

    cdef uint64_t _count(self, int64_t node) except? 0 nogil:
        """How often a function was called in its context, by its caller and by itself."""
        cdef Py_ssize_t row = self.calls.ids.find(
            self.samples[self.parent[node]], self.location[node], self.function[node]
        )
        cdef uint64_t called = self.calls.sums[row] if row >= 0 else 0
        return max(called, self._entries(self.samples[node]))

    # Decisions.

    cdef int _inline_into(self, int64_t base, Growing *heap, Growing *found) except -1 nogil:
        """Choose what is inlined into a function, the best first, until it is large enough."""
        cdef uint32_t size = self._size(base), limit
        cdef int64_t samples
        cdef Candidate candidate
        limit = max(min(size * GROWTH, <uint32_t>LARGEST_LIMIT), <uint32_t>LEAST_LIMIT)
        heap.count = 0
        self._add_candidates(base, heap, found)
        while heap.count and size < limit:
            candidate = _pop(heap)
            samples = self.samples[candidate.node]
            if candidate.size >= self._threshold(candidate.count, samples):
                continue
            if not self.as_llvm and (
                self._is_long(candidate.count, samples) or self._is_recursive(candidate.node)
            ):
                continue
            self.is_inlined[samples] = True
            self.attributes[samples] |= BIT_SHOULD_BE_INLINED
            size += <uint32_t>candidate.size
            self._add_candidates(candidate.node, heap, found)
        return 0

    cdef int _add_candidates(self, int64_t node, Growing *heap, Growing *found) except -1 nogil:
        """Add what a function calls, in LLVM's order."""
        cdef int64_t child = self.first_child[node]
        cdef Candidate *candidate
        cdef Py_ssize_t i
        found.count = 0
        while child >= 0:
            if self.samples[child] >= 0:
                candidate = <Candidate *>add(found)
                candidate.count, candidate.size = self._count(child), self._size(child)
                candidate.guid, candidate.node = self.guids[self.function[child]], child
                candidate.hash = self._hash(child)
            child = self.next_sibling[child]
        if found.count > 1:
            qsort(found.data, found.count, sizeof(Candidate), _by_hash)
        for i in range(found.count):
            _push(heap, (<Candidate *>found.data)[i])
        return 0

    cdef uint64_t _threshold(self, uint64_t count, int64_t samples) except? 0 nogil:
        """What is smaller than this is inlined."""
        cdef double hotness
        cdef uint32_t threshold
        if count <= self.cold:
            return 0
        hotness = 1.0
        if self.hot > self.cold:
            hotness = min(<double>(count - self.cold) / <double>(self.hot - self.cold), 1.0)
        threshold = <uint32_t>(HOT_SIZE * hotness * 100) + 1
        if self.attributes[samples] & BIT_WAS_INLINED:
            threshold *= PREFERENCE
        return threshold

    cdef bint _is_long(self, uint64_t count, int64_t samples) except -1 nogil:
        """Whether a call runs so much that to save the call is nothing.

        Its loops then want the registers that the caller holds. What the compiler inlined in the
        recorded program stays so.
        """
        if self.attributes[samples] & BIT_WAS_INLINED:
            return False
        return self.total[samples] // LONG_CALL > count

    cdef bint _is_recursive(self, int64_t node) except -1 nogil:
        """Whether a function was inlined into itself before: it would grow with each level."""
        cdef int64_t outer = self.parent[node]
        cdef int levels = 0
        while outer != ROOT:
            levels += self.function[outer] == self.function[node]
            outer = self.parent[outer]
        return levels > 1

    cdef uint64_t _size(self, int64_t node) except? 0 nogil:
        """Bytes of a function where the binary has it in the most similar context."""
        cdef int64_t here = 0, before = 0, size = NONE
        cdef uint64_t location = 0
        while node != ROOT and here >= 0:
            before = here
            here = self.sizes.nodes.find(here, location, self.function[node])
            if here >= 0 and self.sizes.size[here] >= 0:
                size = self.sizes.size[here]
            location = self.location[node]
            node = self.parent[node]
        if size >= 0:
            return size
        return self.sizes._of_any(before if here < 0 else here)
