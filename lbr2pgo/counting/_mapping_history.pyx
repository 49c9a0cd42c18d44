"""The last mapping of each process, event by event."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    NONE = -1  # no mapping; a process of which no event is
    NOTHING = 0  # steps: see mapping_history.py
    MAPPING = 1
    FORK = 2
    COVER = 4


def replay(
    const uint8_t[::1] steps,
    const int32_t[::1] own,
    const int32_t[::1] parents,
    int32_t[::1] latest,
    int32_t[::1] before,
    int32_t[::1] last,
    int32_t[::1] length,
):
    """Take each step (n,) of a process, a row of `latest` (p,), all `NONE` at first.

    A mapping gets the number of its step, and so does a cover of one. Fills, each (n,): the
    process's mapping before the step, its last one after it, and how many mappings that one ends.
    Raises IndexError for a process that isn't there.
    """
    cdef Py_ssize_t i
    cdef int32_t who, now
    for i in range(steps.shape[0]):
        if steps[i] == NOTHING:
            continue
        who = own[i]
        before[i] = latest[who]
        if steps[i] == MAPPING or (steps[i] == COVER and before[i] != NONE):
            now = i
            length[i] = 1 if before[i] == NONE else length[before[i]] + 1
        elif steps[i] == FORK and parents[i] != NONE:
            now = latest[parents[i]]
        else:  # execve, a cover of nothing, or a parent of which nothing is known
            now = NONE
        latest[who] = last[i] = now


ctypedef fused Ordered:
    int32_t
    int64_t


cdef inline Py_ssize_t _first_from(Ordered value, const Ordered[::1] ordered) except -1 nogil:
    """The first of ascending values that is not below one; how many there are if all are."""
    cdef Py_ssize_t low = 0, high = ordered.shape[0], middle
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t _first_after(
    uint64_t time, const uint64_t[::1] since, Py_ssize_t low, Py_ssize_t high
) except -1 nogil:
    """The first of ascending times between two places that is later."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if since[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


def last_at(
    const int32_t[::1] asked,
    const uint64_t[::1] times,
    const int64_t[::1] pids,
    const int32_t[::1] owner,
    const uint64_t[::1] since,
    const int32_t[::1] last,
    int64_t[::1] found,
):
    cdef Py_ssize_t i, who, place, first, stop
    # Where the sample before was found, and until when it would have been: most are of one process.
    cdef uint64_t begin = 1, end = 0
    for i in range(asked.shape[0]):
        if i > 0 and asked[i] == asked[i - 1] and begin <= times[i] <= end:
            found[i] = found[i - 1]
            continue
        found[i], begin, end = NONE, 0, <uint64_t>-1
        who = _first_from[int64_t](asked[i], pids)
        if who == pids.shape[0] or pids[who] != asked[i]:
            continue
        first = _first_from[int32_t](<int32_t>who, owner)
        stop = _first_from[int32_t](<int32_t>who + 1, owner)
        place = _first_after(times[i], since, first, stop)
        if place < stop:
            end = since[place] - 1
        if place > first:
            found[i], begin = last[place - 1], since[place - 1]
