"""Virtual unwinding: from a sample's call stack and branch stack to the callers of all that ran.

LLVM: tools/llvm-profgen/PerfReader.cpp, VirtualUnwinder. The state before a branch is found from
that behind it, so a stack is gone through from its newest entry to its oldest one.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from lbr2pgo.native.growing cimport Growing, add, growing, release
from lbr2pgo.native.key_table cimport KeyTable, add_hashed, hash_of, prefetch
from lbr2pgo.native.row_ids cimport RowIds
from lbr2pgo.native.walk cimport (
    COUNTED,
    DUPLICATE,
    EXCEPTION,
    NOT_TAKEN,
    OUTSIDE,
    Stacks,
    WRONG_PATH,
    Walk,
    begin,
    step,
)

# Marks of instructions.
cdef enum:
    MARK_CALL = 1
    MARK_RETURN = 2
    MARK_ENTRY = 4
    MARK_FRAMELESS = 8
    MARK_DIRECT = 16
    MARK_NO_BRANCH = 32

CALL, RETURN, ENTRY, FRAMELESS = MARK_CALL, MARK_RETURN, MARK_ENTRY, MARK_FRAMELESS
DIRECT, NO_BRANCH_THERE = MARK_DIRECT, MARK_NO_BRANCH

# What became of samples, call stacks and runs: places in the array of tallies.
cdef enum:
    T_UNWOUND
    T_NO_BRANCH
    T_DROPPED
    T_WHOLE
    T_NO_CHAIN
    T_NO_CALL
    T_TOO_DEEP
    T_NO_FRAME
    T_MENDED
    T_RUNS
    T_PAIRED_OUTSIDE
    T_UNSEEN
    T_BROKEN
    T_BEHIND_BROKEN
    T_SIZE

(UNWOUND, NO_BRANCH, DROPPED, WHOLE, NO_CHAIN, NO_CALL, TOO_DEEP, NO_FRAME, MENDED, RUNS,
 PAIRED_OUTSIDE, UNSEEN, BROKEN, BEHIND_BROKEN) = range(T_SIZE)
TALLIES = T_SIZE

# What hangs on whether a source's call stacks hold the caller where no frame was made.
cdef enum:
    DOUBT_NONE
    DOUBT_ALL  # nothing shows the caller
    DOUBT_REPEAT  # a function called itself, and may have done so once more

cdef enum:
    MOST_ALIKE = 8

cdef enum:
    STEP_JUMP
    STEP_CALL
    STEP_RETURN

cdef enum:
    ROOT = 0
    EXTERNAL = 1
    OUTSIDE_SITE = 0

FROM_OUTSIDE = EXTERNAL

# What is known of the fall-through from a branch's target to the next newer branch.
cdef enum:
    RUN_NEWEST  # it is still running
    RUN_INSIDE
    RUN_OUTSIDE
    RUN_UNSEEN  # some of what was recorded there did not happen
    RUN_BROKEN

# What is counted of an entry: the branch, and what ran behind it. Of each the node and what it is
# make the first number of a key, behind which stand source, target, and end of the run.
cdef enum:
    HAS_RUN = 1
    HAS_BRANCH = 2
    FLAG_BITS = 2
    NODE_BITS = 31

cdef struct Record:
    uint64_t hash
    uint64_t key[4]

# An entry that counts; a stack of them has the newest one first.
cdef struct Link:
    int64_t source  # instruction, -1 outside
    int64_t target
    int64_t call  # that before the target, -1 for none
    int step
    int run
    bint is_branch  # else the program was interrupted


def outside_site(RowIds sites):
    sites.number(0, 0, 0)


def number_sites(
    RowIds sites, const uint64_t[:, :] addresses, const int64_t[::1] offsets,
    const int64_t[::1] spaces, const uint64_t[:, ::1] bounds, Py_ssize_t columns,
):
    cdef int32_t[:, ::1] found = np.full((addresses.shape[0], columns), OUTSIDE_SITE, np.int32)
    cdef Py_ssize_t i, k, column
    cdef uint64_t address, low, high
    with nogil:
        for i in range(spaces.shape[0]):
            if spaces[i] < 0:
                continue
            low, high = bounds[spaces[i], 0], bounds[spaces[i], 1]
            for k in range(offsets[i], offsets[i + 1]):
                for column in range(columns):
                    address = addresses[k, column]
                    if low <= address < high:
                        found[k, column] = <int32_t>sites.number(<uint64_t>spaces[i], address, 0)
    return np.asarray(found)


@cython.final
cdef class SourceDoubts:
    cdef KeyTable if_whole, if_lacking  # records of one and the other
    cdef uint64_t whole, lacking  # samples that speak for one and the other
    cdef uint64_t unknown, put_back  # samples in doubt: without callers, or with another one
    cdef bint is_whole  # what all of the source's samples say

    def __init__(self):
        self.if_whole, self.if_lacking = KeyTable(), KeyTable()


def judge(list parts):
    cdef SourceDoubts part
    cdef uint64_t whole = 0, lacking = 0
    for part in parts:
        whole += part.whole
        lacking += part.lacking
    for part in parts:
        # Call stacks that lack a caller look whole where a function calls itself.
        part.is_whole = whole > 0 and whole // MOST_ALIKE >= lacking


@cython.final
cdef class Unwinder:
    cdef readonly RowIds nodes
    cdef KeyTable records
    cdef uint64_t[::1] tallied
    cdef bint as_llvm
    cdef const uint64_t[::1] address
    cdef const uint8_t[::1] marks
    cdef const int64_t[::1] stops
    cdef const uint64_t[::1] goes_to
    cdef const int64_t[::1] site_row
    cdef const int64_t[::1] site_call
    cdef const int64_t[::1] site_function
    cdef const int64_t[::1] site_callee
    cdef RowIds missing
    cdef const uint64_t[::1] missing_calls
    cdef uint64_t[::1] frames
    cdef uint64_t[::1] seen_calls
    cdef list sources
    cdef Growing met  # records of the sample at hand

    def __init__(self, bint as_llvm, Py_ssize_t most_frames):
        self.nodes, self.records = RowIds(), KeyTable()
        self.nodes.number(ROOT, ROOT, 0)
        self.tallied = np.zeros(T_SIZE, np.uint64)
        self.frames = np.zeros(most_frames, np.uint64)
        self.seen_calls = np.zeros(most_frames, np.uint64)
        self.missing = RowIds()
        self.sources = []
        self.as_llvm = as_llvm
        self.met = growing(sizeof(Record))

    def set_code(
        self, const uint64_t[::1] address, const uint8_t[::1] marks, const int64_t[::1] stops,
        const uint64_t[::1] goes_to,
    ):
        self.address, self.marks, self.stops, self.goes_to = address, marks, stops, goes_to

    def set_sites(
        self, const int64_t[::1] row, const int64_t[::1] call, const int64_t[::1] function,
        const int64_t[::1] callee,
    ):
        self.site_row, self.site_call = row, call
        self.site_function, self.site_callee = function, callee

    def missing_pairs(
        self, Stacks stacks, const int32_t[:, ::1] entries, const int32_t[::1] chains,
        const int64_t[::1] chain_offsets,
    ):
        cdef RowIds pairs = RowIds()
        cdef Growing links = growing(sizeof(Link))
        cdef Py_ssize_t i, start
        cdef int64_t call
        try:
            with nogil:
                for i in range(stacks.size):
                    start = chain_offsets[i]
                    if stacks.spaces[i] < 0 or chain_offsets[i + 1] - start < 2:
                        continue
                    call = self.site_call[chains[start + 1]]
                    if call < 0 or not self._is_frameless(chains[start]):
                        continue
                    self._gather(stacks, i, entries, &links)
                    if self._see_calls(&links) == 0:
                        pairs.number(
                            self.address[call], <uint64_t>self.site_function[chains[start]], 0
                        )
        finally:
            release(&links)
        return pairs

    def set_missing(self, RowIds pairs, const uint64_t[::1] calls):
        self.missing, self.missing_calls = pairs, calls

    def add_source(self):
        source = SourceDoubts()
        self.sources.append(source)
        return source

    def tallies(self):
        cdef SourceDoubts source
        found = np.asarray(self.tallied).copy()
        for source in self.sources:
            found[T_WHOLE if source.is_whole else T_NO_FRAME] += source.unknown
            found[T_MENDED] += 0 if source.is_whole else source.put_back
        return found

    def places_in(self, RowIds nodes):
        cdef int64_t[::1] place = np.zeros(self.nodes.used, np.int64)
        cdef const uint64_t[:, ::1] keys = self.nodes.keys
        cdef Py_ssize_t i
        with nogil:
            for i in range(1, self.nodes.used):  # parents come before their children
                if keys[i, 1] != EXTERNAL:
                    place[i] = nodes.number(place[keys[i, 0]], keys[i, 1], 0)
        return np.asarray(place)

    def counted(self, place):
        cdef SourceDoubts source
        tables = [self.records] + [
            source.if_whole if source.is_whole else source.if_lacking for source in self.sources
        ]
        rows = [table.rows() for table in tables]
        what, *addresses = np.concatenate([keys for keys, _ in rows]).T
        count = np.concatenate([sums[:, 0] for _, sums in rows])
        mask = np.uint64((1 << NODE_BITS) - 1)
        behind = place[what >> np.uint64(FLAG_BITS) & mask]
        before = place[what >> np.uint64(FLAG_BITS + NODE_BITS)]
        return (
            what & np.uint64(HAS_RUN) != 0, behind, what & np.uint64(HAS_BRANCH) != 0, before,
            *addresses, count,
        )

    def unwind(
        self, Stacks stacks, const int32_t[:, ::1] entries, const int32_t[::1] chains,
        const int64_t[::1] chain_offsets, SourceDoubts source, Py_ssize_t first, Py_ssize_t past,
    ):
        cdef Growing links = growing(sizeof(Link))
        cdef Py_ssize_t i
        try:
            with nogil:
                for i in range(first, past):
                    if stacks.spaces[i] >= 0:
                        self._unwind_sample(
                            stacks, i, entries, chains, chain_offsets, source, &links
                        )
        finally:
            release(&links)
            release(&self.met)

    cdef int _unwind_sample(
        self, Stacks stacks, Py_ssize_t i, const int32_t[:, ::1] entries,
        const int32_t[::1] chains, const int64_t[::1] chain_offsets, SourceDoubts source,
        Growing *links,
    ) except -1 nogil:
        cdef uint64_t weight = stacks.weights[i], missing = 0, node
        cdef int64_t start = chain_offsets[i], end = chain_offsets[i + 1], seen, lost
        cdef int tally = T_WHOLE, doubt
        cdef int64_t used = self._read_chain(chains, start, end, &tally)
        if self.as_llvm and tally == T_NO_CHAIN:
            self.tallied[T_DROPPED] += weight
            return 0
        self._gather(stacks, i, entries, links)
        if links.count == 0:
            self.tallied[T_NO_BRANCH] += weight
            return 0
        self.tallied[T_UNWOUND] += weight
        self._tally_runs(links, weight)
        if self.as_llvm:
            self.tallied[tally] += weight
            return self._follow(links, self._node(used), weight, self.records)
        seen = self._see_calls(links)
        lost = self._lost(0, seen, used)
        doubt = self._doubt(chains, start, end, seen, lost, used, source, weight)
        if doubt == DOUBT_ALL:
            missing = self._missing_call(chains, start, end)
        if doubt == DOUBT_ALL and not missing and tally == T_WHOLE:
            source.unknown += weight
        else:
            self.tallied[tally] += weight
        if lost or used < self._known(self.seen_calls, seen):
            self.tallied[T_MENDED] += weight
            used = self._put_back(lost, seen, used)
        elif doubt == DOUBT_REPEAT or missing:
            source.put_back += weight
        node = self._node(used)
        if doubt == DOUBT_NONE:
            return self._follow(links, node, weight, self.records)
        self._follow(links, node, weight, source.if_whole)
        if missing:
            node = self.nodes.number(node, missing, 0)
        elif doubt == DOUBT_REPEAT:
            used = self._read_chain(chains, start, end, &tally)
            node = self._node(self._put_back(self._lost(1, seen, used), seen, used))
        else:
            node = ROOT
        return self._follow(links, node, weight, source.if_lacking)

    cdef bint _is_frameless(self, int32_t site) except -1 nogil:
        cdef int64_t row = self.site_row[site]
        return row >= 0 and self.marks[row] & MARK_FRAMELESS != 0

    cdef uint64_t _missing_call(
        self, const int32_t[::1] chains, int64_t start, int64_t end
    ) except? 0 nogil:
        """The only call that can stand between the two innermost frames, 0 for none."""
        cdef int64_t call = self.site_call[chains[start + 1]] if end - start > 1 else -1
        cdef Py_ssize_t row
        if call < 0:
            return 0
        row = self.missing.find(
            self.address[call], <uint64_t>self.site_function[chains[start]], 0
        )
        return self.missing_calls[row] if row >= 0 else 0

    cdef int _doubt(
        self, const int32_t[::1] chains, int64_t start, int64_t end, int64_t seen, int64_t lost,
        int64_t used, SourceDoubts source, uint64_t weight,
    ) except -1 nogil:
        """What hangs on whether call stacks lack a caller where no frame was made.

        Where the branch stack shows callers, or a call of the very function stands before the
        innermost frame, a sample speaks for one or the other itself.
        """
        cdef int64_t function
        if start == end or not self._is_frameless(chains[start]):
            return DOUBT_NONE
        function = self.site_function[chains[start]]
        if seen and (lost or not used):
            source.lacking += weight
            return DOUBT_NONE
        if seen or start + 1 < end and self.site_callee[chains[start + 1]] == function:
            source.whole += weight
        if not seen:
            return DOUBT_ALL
        return DOUBT_REPEAT if self.site_function[chains[start + 1]] == function else DOUBT_NONE

    cdef int _gather(
        self, Stacks stacks, Py_ssize_t i, const int32_t[:, ::1] sites, Growing *links
    ) except -1 nogil:
        """Put the entries of a sample that count into `links`."""
        cdef Walk walk
        cdef Py_ssize_t first = stacks.offsets[i], k
        cdef bint is_lost = False, is_passed_over = False
        cdef int64_t source, target
        links.count = 0
        if not begin(stacks, i, &walk):
            return 0
        while step(&walk):
            k = first + walk.place - 1
            source, target = self.site_row[sites[k, 0]], self.site_row[sites[k, 1]]
            if walk.reason == WRONG_PATH or walk.reason == NOT_TAKEN:
                is_passed_over = True
            elif walk.reason == COUNTED or walk.reason == EXCEPTION:
                if source >= 0 or target >= 0:
                    self._link(
                        &walk, source, target, self.site_call[sites[k, 1]], is_passed_over, is_lost,
                        links,
                    )
                    is_lost, is_passed_over = False, walk.reason == EXCEPTION
            elif walk.reason != DUPLICATE and walk.reason != OUTSIDE:
                is_lost = True
        return 0

    cdef int _link(
        self, const Walk *walk, int64_t source, int64_t target, int64_t call,
        bint is_passed_over, bint is_lost, Growing *links,
    ) except -1 nogil:
        """Add the entry at which a walk is; what is newer may have been passed over, or lost."""
        cdef Link *link = <Link *>add(links)
        link.source, link.target, link.call = source, target, call
        link.is_branch = walk.reason == COUNTED
        link.step = self._step(source, target, call) if link.is_branch else STEP_JUMP
        if is_lost:
            link.run = RUN_BROKEN
        elif links.count == 1:
            link.run = RUN_NEWEST
        else:
            link.run = self._run(
                target, (<Link *>links.data)[links.count - 2].source, walk.has_end, is_passed_over
            )
        return 0

    cdef int _step(self, int64_t source, int64_t target, int64_t call) except -1 nogil:
        """What a branch is; `call` is the instruction before its target, if that is a call."""
        if source >= 0:
            if self.marks[source] & MARK_CALL:
                return STEP_CALL
            return STEP_RETURN if self.marks[source] & MARK_RETURN else STEP_JUMP
        # What a call that never returns is followed by is entered, not returned to.
        return STEP_RETURN if call >= 0 and not self.marks[target] & MARK_ENTRY else STEP_CALL

    cdef int _run(
        self, int64_t first, int64_t last, bint has_end, bint is_passed_over
    ) except -1 nogil:
        """What is known of the run between two branches; `has_end` as of `Walk`."""
        if first < 0 and last < 0:
            return RUN_OUTSIDE
        if not has_end and not self.as_llvm:
            return RUN_UNSEEN if is_passed_over else RUN_BROKEN
        if first < 0 or last < 0 or self.address[first] > self.address[last]:
            return RUN_BROKEN
        return RUN_INSIDE if self.stops[first] == self.stops[last] else RUN_BROKEN

    cdef int64_t _read_chain(
        self, const int32_t[::1] chain, int64_t start, int64_t end, int *tally
    ) except -1 nogil:
        """Put the calls on the call stack into `frames`, innermost first; how many there are."""
        cdef int64_t k, call, used = 0
        cdef uint64_t frame
        cdef bint was_outside
        if start == end:
            tally[0] = T_NO_CHAIN
            return 0
        was_outside = self.site_row[chain[start]] < 0
        for k in range(start + 1, end):
            frame = EXTERNAL
            call = self.site_call[chain[k]]
            if call >= 0:
                frame = self.address[call]
            elif self.site_row[chain[k]] >= 0:
                tally[0] = T_NO_CALL
                break
            if frame == EXTERNAL and was_outside:
                continue
            if used == self.frames.shape[0]:
                tally[0] = T_TOO_DEEP
                break
            was_outside = frame == EXTERNAL
            self.frames[used] = frame
            used += 1
        return used

    cdef int64_t _known(self, const uint64_t[::1] frames, int64_t used) except -1 nogil:
        """How many frames there are without what is outside of all of them."""
        return used - 1 if used and frames[used - 1] == EXTERNAL else used

    cdef int64_t _lost(self, int64_t least, int64_t seen, int64_t used) except -1 nogil:
        """How many callers the call stack lacks.

        The callers that show in the branch stack are those of the innermost functions. The call
        stack goes on with the first of them that make sense there.
        """
        cdef int64_t lost = least
        while not self._goes_on(lost, seen, used):
            lost += 1
        return lost

    cdef int64_t _put_back(self, int64_t lost, int64_t seen, int64_t used) except -1 nogil:
        """Put callers that were seen into `frames`, where so many are lost; how many there are now.
        """
        cdef int64_t i
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

    cdef int64_t _see_calls(self, const Growing *stack) except -1 nogil:
        """Put the calls in a branch stack that have not returned into `seen_calls`."""
        cdef const Link *links = <const Link *>stack.data
        cdef int64_t returned = 0, seen = 0
        cdef uint64_t call
        cdef Py_ssize_t k
        for k in range(stack.count):
            if links[k].run == RUN_BROKEN:
                break
            if links[k].step == STEP_RETURN:
                returned += 1
            elif links[k].step == STEP_CALL and returned > 0:
                returned -= 1
            elif links[k].step == STEP_CALL and seen < self.seen_calls.shape[0]:
                call = self._address(links[k].source)
                if call == EXTERNAL and seen and self.seen_calls[seen - 1] == EXTERNAL:
                    continue  # as in call stacks
                self.seen_calls[seen] = call
                seen += 1
        return seen

    cdef uint64_t _address(self, int64_t row) except? 0 nogil:
        return self.address[row] if row >= 0 else EXTERNAL

    cdef uint64_t _node(self, int64_t used) except? 0 nogil:
        """That of the first `frames`."""
        cdef uint64_t node = ROOT
        cdef int64_t k
        for k in range(self._known(self.frames, used) - 1, -1, -1):
            node = self.nodes.number(node, self.frames[k], 0)
        return node

    cdef int _follow(
        self, const Growing *stack, uint64_t node, uint64_t weight, KeyTable records
    ) except -1 nogil:
        """Go through a branch stack, given the node of the callers of where its newest entry led.
        """
        cdef const Link *links = <const Link *>stack.data
        cdef bint is_broken = False
        cdef uint64_t before
        cdef Py_ssize_t k
        self.met.count = 0
        for k in range(stack.count):
            is_broken = is_broken or links[k].run == RUN_BROKEN
            before = ROOT if is_broken else self._before(node, &links[k])
            self._meet(links, k, node, before, records)
            node = before
        return self._count(weight, records)

    cdef int _meet(
        self, const Link *links, Py_ssize_t k, uint64_t node, uint64_t before, KeyTable records
    ) except -1 nogil:
        """Note what a link tells, and have its place in the table fetched from memory."""
        cdef uint64_t flags = 0, behind = 0, end = 0, source = 0
        cdef Record *record
        if k > 0 and links[k].run == RUN_INSIDE:
            flags, behind, end = HAS_RUN, node, self.address[links[k - 1].source]
        if links[k].is_branch and not self._is_none(&links[k]):
            flags |= HAS_BRANCH
            source = self._address(links[k].source)
        if flags == 0:
            return 0
        if not flags & HAS_BRANCH or links[k].source < 0:
            before = ROOT
        record = <Record *>add(&self.met)
        record.key[0] = (before << NODE_BITS | behind) << FLAG_BITS | flags
        record.key[1], record.key[2], record.key[3] = source, self.address[links[k].target], end
        record.hash = hash_of(record.key[0], record.key[1], record.key[2], record.key[3])
        prefetch(&records.places[record.hash & records.mask])
        return 0

    cdef int _count(self, uint64_t weight, KeyTable records) except -1 nogil:
        cdef const Record *met = <const Record *>self.met.data
        cdef Py_ssize_t i
        for i in range(self.met.count):
            add_hashed(
                records, met[i].hash, met[i].key[0], met[i].key[1], met[i].key[2], met[i].key[3],
                weight, 0, 0,
            )
        return 0

    cdef bint _is_none(self, const Link *link) except -1 nogil:
        """Whether a branch leaves the image, or can't have been made (see `replay.astray`)."""
        cdef int64_t source = link.source, target = link.target
        if source < 0 or target < 0:
            return target < 0
        if self.marks[source] & MARK_NO_BRANCH:
            return True
        return (
            self.marks[source] & MARK_DIRECT != 0 and self.goes_to[source] != self.address[target]
        )

    cdef int _tally_runs(self, const Growing *stack, uint64_t weight) except -1 nogil:
        """Tally what ran from the target of each branch to the newer one."""
        cdef const Link *links = <const Link *>stack.data
        cdef bint is_broken = stack.count > 0 and links[0].run == RUN_BROKEN
        cdef Py_ssize_t k
        for k in range(1, stack.count):
            is_broken = is_broken or links[k].run == RUN_BROKEN
            if links[k].run == RUN_INSIDE:
                self.tallied[T_BEHIND_BROKEN if is_broken else T_RUNS] += weight
            elif links[k].run == RUN_OUTSIDE:
                self.tallied[T_PAIRED_OUTSIDE] += weight
            else:
                self.tallied[T_UNSEEN if links[k].run == RUN_UNSEEN else T_BROKEN] += weight
        return 0

    cdef uint64_t _before(self, uint64_t node, const Link *link) except? 0 nogil:
        """The node of the callers before a branch, given that behind it."""
        cdef int64_t call
        if link.step == STEP_RETURN:
            # A call may stand last in its section: what it would return to is outside.
            call = link.call if link.target >= 0 else -1
            return self.nodes.number(node, self._address(call), 0)
        # Where the call stack lacks the caller, what was its caller stays.
        if link.step == STEP_CALL and node != ROOT:
            if self.nodes.keys[node, 1] == self._address(link.source):
                return self.nodes.keys[node, 0]
        return node
