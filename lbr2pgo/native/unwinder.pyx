"""Virtual unwinding: from a sample's call stack and branch stack to the callers of all that ran.

LLVM: tools/llvm-profgen/PerfReader.cpp, VirtualUnwinder. The state before a branch is found from
that behind it, so a stack is gone through from its newest entry to its oldest one.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from lbr2pgo.native.row_ids cimport RowIds, RowSums

# Marks of instructions.
cdef enum:
    MARK_CALL = 1
    MARK_RETURN = 2
    MARK_ENTRY = 4

CALL, RETURN, ENTRY = MARK_CALL, MARK_RETURN, MARK_ENTRY

# What became of samples, call stacks and runs: places in the array of tallies.
cdef enum:
    T_UNWOUND
    T_NO_CHAIN
    T_NO_BRANCH
    T_WHOLE
    T_NO_CALL
    T_TOO_DEEP
    T_MENDED
    T_RUNS
    T_PAIRED_OUTSIDE
    T_BROKEN
    T_BEHIND_BROKEN
    T_SIZE

(UNWOUND, NO_CHAIN, NO_BRANCH, WHOLE, NO_CALL, TOO_DEEP, MENDED, RUNS, PAIRED_OUTSIDE, BROKEN,
 BEHIND_BROKEN) = range(T_SIZE)
TALLIES = T_SIZE

cdef enum:
    STEP_JUMP
    STEP_CALL
    STEP_RETURN

cdef enum:
    ROOT = 0
    EXTERNAL = 1

OUTSIDE = EXTERNAL


def number_sites(
    RowIds sites, const uint64_t[:, :] addresses, const int64_t[::1] offsets,
    const int64_t[::1] spaces, Py_ssize_t columns,
):
    cdef int32_t[:, ::1] found = np.full((addresses.shape[0], columns), -1, np.int32)
    cdef Py_ssize_t i, k, column
    with nogil:
        for i in range(spaces.shape[0]):
            if spaces[i] < 0:
                continue
            for k in range(offsets[i], offsets[i + 1]):
                for column in range(columns):
                    found[k, column] = <int32_t>sites.number(
                        <uint64_t>spaces[i], addresses[k, column], 0
                    )
    return np.asarray(found)


@cython.final
cdef class Unwinder:
    cdef readonly RowIds nodes
    cdef readonly RowSums records
    cdef uint64_t[::1] tallied
    cdef bint as_llvm
    cdef const uint64_t[::1] address
    cdef const uint8_t[::1] marks
    cdef const int64_t[::1] stops
    cdef const int64_t[::1] site_row
    cdef const int64_t[::1] site_call
    cdef uint64_t[::1] frames
    cdef uint64_t[::1] seen_calls

    def __init__(self, bint as_llvm, Py_ssize_t most_frames):
        self.nodes, self.records = RowIds(), RowSums()
        self.nodes.number(ROOT, ROOT, 0)
        self.tallied = np.zeros(T_SIZE, np.uint64)
        self.frames = np.zeros(most_frames, np.uint64)
        self.seen_calls = np.zeros(most_frames, np.uint64)
        self.as_llvm = as_llvm

    def set_code(
        self, const uint64_t[::1] address, const uint8_t[::1] marks, const int64_t[::1] stops
    ):
        self.address, self.marks, self.stops = address, marks, stops

    def set_sites(self, const int64_t[::1] row, const int64_t[::1] call):
        self.site_row, self.site_call = row, call

    def tallies(self):
        return np.asarray(self.tallied).copy()

    def collapsed(self):
        cdef RowIds nodes = RowIds()
        cdef RowSums records = RowSums()
        cdef Py_ssize_t i
        cdef int64_t[::1] place = np.zeros(self.nodes.used, np.int64)
        cdef const uint64_t[:, ::1] keys = self.nodes.keys
        cdef uint64_t node
        nodes.number(ROOT, ROOT, 0)
        with nogil:
            for i in range(1, self.nodes.used):  # parents come before their children
                if keys[i, 1] != EXTERNAL:
                    place[i] = nodes.number(place[keys[i, 0]], keys[i, 1], 0)
            keys = self.records.ids.keys
            for i in range(self.records.ids.used):
                node = place[keys[i, 0] >> 1]
                records.add(node << 1 | keys[i, 0] & 1, keys[i, 1], keys[i, 2], self.records.sums[i])
        return nodes.rows(), records.rows(), records.counts()

    def unwind(
        self, const int32_t[:, ::1] entries, const int64_t[::1] offsets,
        const int32_t[::1] chains, const int64_t[::1] chain_offsets,
        const int64_t[::1] spaces, const uint64_t[::1] weights,
    ):
        cdef Py_ssize_t i
        cdef int64_t used
        with nogil:
            for i in range(spaces.shape[0]):
                if spaces[i] < 0:
                    continue
                used = self._read_chain(chains, chain_offsets[i], chain_offsets[i + 1], weights[i])
                if self.as_llvm and used < 0:
                    continue
                if not self.as_llvm:
                    used = self._mend(max(used, 0), entries, offsets[i], offsets[i + 1], weights[i])
                self._follow(entries, offsets[i], offsets[i + 1], self._node(used), weights[i])

    cdef int64_t _read_chain(
        self, const int32_t[::1] chain, int64_t start, int64_t end, uint64_t weight
    ) except -2 nogil:
        """Put the calls on the call stack into `frames`, innermost first; how many, -1 without one.
        """
        cdef int64_t k, call, fate = T_WHOLE, used = 0
        cdef uint64_t frame
        cdef bint was_outside
        if start == end:
            self.tallied[T_NO_CHAIN] += weight
            return -1
        was_outside = self.site_row[chain[start]] < 0
        for k in range(start + 1, end):
            frame = EXTERNAL
            call = self.site_call[chain[k]]
            if call >= 0:
                frame = self.address[call]
            elif self.site_row[chain[k]] >= 0:
                fate = T_NO_CALL
                break
            if frame == EXTERNAL and was_outside:
                continue
            if used == self.frames.shape[0]:
                fate = T_TOO_DEEP
                break
            was_outside = frame == EXTERNAL
            self.frames[used] = frame
            used += 1
        self.tallied[fate] += weight
        return self._known(self.frames, used)

    cdef int64_t _known(self, const uint64_t[::1] frames, int64_t used) except -1 nogil:
        """How many frames there are without what is outside of all of them."""
        return used - 1 if used and frames[used - 1] == EXTERNAL else used

    cdef int64_t _mend(
        self, int64_t used, const int32_t[:, ::1] entries, int64_t start, int64_t end,
        uint64_t weight,
    ) except -1 nogil:
        """Add callers that the call stack lacks and the branch stack shows; how many there are now.

        The callers that show in the branch stack are those of the innermost functions. The call
        stack goes on with the first of them that make sense there.
        """
        cdef int64_t i, lost = 0, seen = self._known(
            self.seen_calls, self._see_calls(entries, start, end)
        )
        while not self._goes_on(lost, seen, used):
            lost += 1
        if lost == 0 and used >= seen:
            return used
        self.tallied[T_MENDED] += weight
        if used >= seen - lost:
            seen = lost
            used = min(used, self.frames.shape[0] - lost)
            for i in range(used - 1, -1, -1):
                self.frames[lost + i] = self.frames[i]
        else:
            used = 0
        for i in range(seen):
            self.frames[i] = self.seen_calls[i]
        return seen + used

    cdef bint _goes_on(self, int64_t lost, int64_t seen, int64_t used) except? 1 nogil:
        """Whether the call stack may go on where so many of the callers that were seen are lost."""
        cdef int64_t i
        for i in range(min(seen - lost, used)):
            if self.frames[i] != self.seen_calls[lost + i]:
                return False
        return True

    cdef int64_t _see_calls(
        self, const int32_t[:, ::1] entries, int64_t start, int64_t end
    ) except -1 nogil:
        """Put the calls in a branch stack that have not returned into `seen_calls`."""
        cdef int64_t k, source, target, pointer = -1, step, returned = 0, seen = 0
        cdef bint is_first = True
        for k in range(start, end):
            source = self.site_row[entries[k, 0]]
            target = self.site_row[entries[k, 1]]
            if source < 0 and target < 0:
                continue
            if not is_first and not self._may_run(target, pointer):
                break
            is_first, pointer = False, source
            step = self._step(source, target, self.site_call[entries[k, 1]])
            if step == STEP_RETURN:
                returned += 1
            elif step == STEP_CALL and returned > 0:
                returned -= 1
            elif step == STEP_CALL and seen < self.seen_calls.shape[0]:
                self.seen_calls[seen] = self.address[source] if source >= 0 else EXTERNAL
                seen += 1
        return seen

    cdef uint64_t _node(self, int64_t used) except? 0 nogil:
        cdef uint64_t node = ROOT
        cdef int64_t k
        for k in range(used - 1, -1, -1):
            node = self.nodes.number(node, self.frames[k], 0)
        return node

    cdef int _follow(
        self, const int32_t[:, ::1] entries, int64_t start, int64_t end, uint64_t node,
        uint64_t weight,
    ) except -1 nogil:
        """Go through a branch stack, given the node of the callers of where its newest entry led.
        """
        cdef int64_t k, source, target, pointer = -1
        cdef bint is_broken = False, is_first = True
        cdef uint64_t from_
        for k in range(start, end):
            source = self.site_row[entries[k, 0]]
            target = self.site_row[entries[k, 1]]
            if source < 0 and target < 0:
                continue
            if not is_first and not self._run(target, pointer, node, is_broken, weight):
                is_broken = True
            is_first = False
            from_ = self.address[source] if source >= 0 else EXTERNAL
            node = self._before(node, source, target, from_, self.site_call[entries[k, 1]]) if (
                not is_broken) else ROOT
            pointer = source
            if target >= 0:
                self.records.add(
                    (node if source >= 0 else ROOT) << 1 | 1, from_, self.address[target], weight
                )
        self.tallied[T_NO_BRANCH if is_first else T_UNWOUND] += weight
        return 0

    cdef int _step(self, int64_t source, int64_t target, int64_t call) except -1 nogil:
        """What a branch is; `call` is the instruction before its target, if that is a call."""
        if source >= 0:
            if self.marks[source] & MARK_CALL:
                return STEP_CALL
            return STEP_RETURN if self.marks[source] & MARK_RETURN else STEP_JUMP
        # What a call that never returns is followed by is entered, not returned to.
        return STEP_RETURN if call >= 0 and not self.marks[target] & MARK_ENTRY else STEP_CALL

    cdef uint64_t _before(
        self, uint64_t node, int64_t source, int64_t target, uint64_t from_, int64_t call
    ) except? 0 nogil:
        """The node of the callers before a branch, given that behind it; `call` as of `_step`."""
        cdef int step = self._step(source, target, call)
        if step == STEP_RETURN:
            # A call may stand last in its section: what it would return to is outside.
            from_ = self.address[call] if call >= 0 and target >= 0 else EXTERNAL
            return self.nodes.number(node, from_, 0)
        # Where the call stack lacks the caller, what was its caller stays.
        if step == STEP_CALL and node != ROOT and self.nodes.keys[node, 1] == from_:
            return self.nodes.keys[node, 0]
        return node

    cdef bint _may_run(self, int64_t first, int64_t last) except? 1 nogil:
        """Whether execution can go straight from an instruction to another; -1 is outside."""
        if first < 0 or last < 0:
            return first == last
        return first <= last and self.stops[first] == self.stops[last]

    cdef int _run(
        self, int64_t first, int64_t last, uint64_t node, bint is_broken, uint64_t weight
    ) except -1 nogil:
        """Record a straight run; 0 if it can't be."""
        if not self._may_run(first, last):
            self.tallied[T_BROKEN] += weight
            return 0
        if first < 0:
            self.tallied[T_PAIRED_OUTSIDE] += weight
            return 1
        self.tallied[T_BEHIND_BROKEN if is_broken else T_RUNS] += weight
        self.records.add(node << 1, self.address[first], self.address[last], weight)
        return 1
