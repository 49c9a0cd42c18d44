"""The counting rule: one walk along a branch stack, for all that looks at neighbours.

`lbr2pgo.counting.count` shows it on small stacks.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from lbr2pgo.native.bits cimport (
    ABORT,
    CYCLES_HIGH_SHIFT,
    CYCLES_MASK,
    CYCLES_SHIFT,
    NOT_TAKEN_SHIFT,
    SPEC_MASK,
    SPEC_SHIFT,
)
from lbr2pgo.native.quirks cimport (
    is_bogus,
    is_duplicate,
    is_empty,
    is_exception,
    is_interrupt,
    is_not_taken,
    is_poison,
    is_wrong_path,
)

# What the entries of a stack are to each other.
cpdef enum StackKind:
    CONSECUTIVE  # all branches that were taken, one after the other
    SELECTED  # some of them: filtered by type, or sampled one by one
    OPEN_CALLS  # calls that have not returned yet: call-stack mode
    # All entries are believed, and those that touch the image are neighbours, as llvm-profgen has
    # it (LLVM: tools/llvm-profgen/PerfReader.cpp, extractLBRStack).
    AS_LLVM

# What became of an entry, or of the fall-through between two; in small letters the waterfall's.
cpdef enum Reason:
    COUNTED
    # Why an entry is no branch of this image.
    OUTSIDE
    EMPTY
    POISON
    WRONG_PATH
    DUPLICATE
    EXCEPTION
    NOT_TAKEN
    CALL_STACK
    BOGUS_TARGET
    # Why the recorder can't tell what ran between two entries.
    ABORTED
    FILTERED
    INTERRUPTED

cdef enum:
    REASONS = INTERRUPTED + 1
    # Addresses of a user have so many bits at most: none with fewer is poison or bogus.
    USER_BITS = 57


cdef class Stacks:
    cdef const uint64_t[:, ::1] entries
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] spaces
    cdef const uint8_t[::1] kinds
    cdef const uint64_t[::1] weights
    cdef const uint64_t[:, ::1] bounds
    cdef readonly Py_ssize_t size


cdef struct Walk:
    # The stack: what is left of it, newest entry first, and what holds for all of it.
    const uint64_t* rest
    const uint64_t* stop
    uint64_t space
    uint64_t weight
    uint64_t low
    uint64_t high
    int kind  # a StackKind
    # The entry at hand: its place from the newest on, and which of its addresses lie in the image.
    Py_ssize_t place
    uint64_t source
    uint64_t target
    uint64_t flags
    bint from_in
    bint to_in
    int reason  # a Reason
    # Whether it is known how far execution ran straight on from its target: to a branch at `end`
    # that had these flags. And why the recorder can't tell, if it is to blame.
    bint has_end
    uint64_t end
    uint64_t end_flags
    int gap  # another
    # What the newer entries mean for the next older one.
    bint ends_run
    uint64_t run_end
    uint64_t run_flags
    bint is_abort
    bint cuts_run  # an interrupt does, and where the program went on is not known
    # Where the program went on after an interrupt that is still to come: what ran there belongs to
    # the run before it.
    bint is_held
    bint is_plain  # none of that: neighbours follow each other as in most stacks


cdef inline int begin(Stacks stacks, Py_ssize_t i, Walk* walk) except -1 nogil:
    """Stand before the newest entry of sample `i`; 0 if the sample does not count."""
    cdef int64_t space = stacks.spaces[i]
    cdef int64_t first = stacks.offsets[i], stop = stacks.offsets[i + 1]
    if space < 0 or first == stop:
        return 0
    # Checked here, so that the entries can be reached by a pointer from now on.
    if not 0 <= first < stop <= stacks.entries.shape[0]:
        with gil:
            raise IndexError(f"sample {i} has entries {first} to {stop}, which don't exist")
    walk.rest = &stacks.entries[first, 0]
    walk.stop = walk.rest + 3 * (stop - first)
    walk.space, walk.weight = <uint64_t>space, stacks.weights[i]
    walk.low, walk.high = stacks.bounds[space, 0], stacks.bounds[space, 1]
    walk.kind, walk.place, walk.reason = stacks.kinds[i], 0, EMPTY
    walk.source = walk.target = walk.flags = 0
    walk.ends_run, walk.run_end, walk.run_flags, walk.is_abort = False, 0, 0, False
    walk.cuts_run = walk.is_held = False
    walk.is_plain = walk.kind == CONSECUTIVE
    return 1


cdef inline bint step(Walk* walk) noexcept nogil:
    """Go on to the next older entry; False behind the oldest."""
    cdef bint repeats
    if walk.rest == walk.stop:
        return False
    repeats = (
        walk.place == 1
        and walk.reason == COUNTED
        and walk.kind == CONSECUTIVE
        and is_duplicate(walk.source, walk.target, walk.rest[0], walk.rest[1])
    )
    walk.source, walk.target, walk.flags = walk.rest[0], walk.rest[1], walk.rest[2]
    walk.from_in = walk.low <= walk.source < walk.high
    walk.to_in = walk.low <= walk.target < walk.high
    if walk.is_plain and not repeats and _is_plain(walk):
        _pass_plainly(walk)
    else:
        _pass(walk, repeats)
    walk.rest += 3
    walk.place += 1
    return True


cdef inline bint _is_plain(const Walk* walk) noexcept nogil:
    """Whether the entry at hand is a user's branch like nearly all, by its address and flags."""
    return (
        (walk.source | walk.target) >> USER_BITS == 0
        and walk.source | walk.target
        and not walk.flags & (ABORT | <uint64_t>SPEC_MASK << SPEC_SHIFT | 1ULL << NOT_TAKEN_SHIFT)
        and not is_exception(walk.flags)
    )


cdef inline void _pass_plainly(Walk* walk) noexcept nogil:
    """As `_pass`, for a plain entry that nothing odd is the newer neighbour of."""
    walk.reason = COUNTED if walk.from_in or walk.to_in else OUTSIDE
    walk.gap = COUNTED
    walk.has_end = walk.to_in and walk.ends_run
    walk.end, walk.end_flags = walk.run_end, walk.run_flags
    walk.ends_run = walk.from_in
    walk.run_end, walk.run_flags = walk.source, walk.flags


cdef inline void _pass(Walk* walk, bint repeats) noexcept nogil:
    """Judge the entry at hand, and what it means to its neighbours."""
    walk.reason = _judge(walk)
    if repeats and walk.reason == COUNTED:
        # As if it were not there: the next one is the newest one's neighbour.
        walk.reason, walk.has_end, walk.gap = DUPLICATE, False, COUNTED
    else:
        _meet_newer(walk)
        _face_older(walk)
    walk.is_plain = walk.kind == CONSECUTIVE and not (
        walk.is_abort or walk.is_held or walk.cuts_run
    )


cdef inline int _judge(const Walk* walk) noexcept nogil:
    """What the entry at hand is, by itself."""
    cdef bint is_inside = walk.from_in or walk.to_in
    if walk.kind == AS_LLVM:
        return COUNTED if is_inside else OUTSIDE
    if walk.kind == OPEN_CALLS:
        return CALL_STACK
    if is_empty(walk.source, walk.target):
        return EMPTY
    if is_poison(walk.source, walk.target):
        return POISON
    if is_wrong_path(walk.flags):
        return WRONG_PATH
    if is_bogus(walk.target):
        return BOGUS_TARGET
    if is_not_taken(walk.flags):
        return NOT_TAKEN
    if not is_inside:
        return OUTSIDE
    return EXCEPTION if is_exception(walk.flags) else COUNTED


cdef inline void _meet_newer(Walk* walk) noexcept nogil:
    """Find the run from the target of the entry at hand to the branch of the newer one."""
    cdef bint goes_on = walk.reason == COUNTED or walk.reason == EXCEPTION
    walk.has_end = goes_on and walk.to_in and walk.ends_run
    walk.end, walk.end_flags = walk.run_end, walk.run_flags
    walk.gap = ABORTED if walk.is_abort else COUNTED
    if walk.cuts_run and goes_on and walk.to_in:
        walk.gap = INTERRUPTED
    if walk.kind == SELECTED and walk.reason == COUNTED and walk.place > 0:
        walk.gap = FILTERED


cdef inline bint _is_met(const Walk* walk) noexcept nogil:
    """Whether the interrupt that the entry at hand returns from came at the same address.

    What the kernel did meanwhile lies outside; the first older entry that does not is the one.
    """
    cdef const uint64_t* older = walk.rest + 3
    while older != walk.stop and not is_empty(older[0], older[1]):
        if walk.low <= older[1] < walk.high:
            return False
        if walk.low <= older[0] < walk.high:
            return older[0] == walk.target and is_interrupt(older[2])
        older += 3
    return False


cdef inline void _face_older(Walk* walk) noexcept nogil:
    """Note what the entry at hand means for the older one."""
    if walk.reason == EXCEPTION or walk.is_held:
        _face_across(walk)
    else:
        _face_neighbour(walk)


cdef inline void _face_across(Walk* walk) noexcept nogil:
    """As `_face_older`, where an interrupt or a return from one stands in between."""
    cdef uint64_t cycles = <uint64_t>CYCLES_MASK << CYCLES_SHIFT | <uint64_t>0xF << CYCLES_HIGH_SHIFT
    cdef bint is_interrupted = (
        walk.reason == EXCEPTION and walk.from_in and is_interrupt(walk.flags)
    )
    walk.is_abort = False
    if walk.has_end and not walk.from_in and _is_met(walk):
        # Its own run is the rest of one that began before the interrupt; the cycles of its end
        # count from the return.
        walk.has_end, walk.is_held = False, True
        walk.run_flags &= ~cycles
        walk.ends_run = walk.cuts_run = False
    elif walk.is_held and is_interrupted:
        walk.is_held, walk.ends_run = False, True
    elif not walk.is_held:
        walk.ends_run, walk.cuts_run = False, is_interrupted and walk.kind == CONSECUTIVE


cdef inline void _face_neighbour(Walk* walk) noexcept nogil:
    cdef bint is_branch = walk.reason == COUNTED and walk.kind == CONSECUTIVE
    walk.is_abort = is_branch and walk.flags & ABORT != 0
    if walk.kind != AS_LLVM:
        walk.ends_run = is_branch and walk.from_in and not walk.is_abort
    elif walk.reason == COUNTED:
        walk.ends_run = walk.from_in
    else:
        return  # entries outside stand between neighbours
    walk.cuts_run = False
    walk.run_end, walk.run_flags = walk.source, walk.flags


cdef inline Py_ssize_t longest(Stacks stacks) except -1:
    """How many entries the longest stack has."""
    cdef Py_ssize_t i, most = 0
    for i in range(stacks.size):
        most = max(most, stacks.offsets[i + 1] - stacks.offsets[i])
    return most
