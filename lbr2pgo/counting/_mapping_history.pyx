"""The last mapping of each process, event by event."""

from libc.stdint cimport int32_t, uint8_t

cdef enum:
    NONE = -1  # no mapping; a process of which no event is
    NOTHING = 0  # steps: see mapping_history.py
    MAPPING = 1
    FORK = 2


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

    A mapping gets the number of its step. Fills, each (n,): the process's mapping before the step,
    its last one after it, and how many mappings that one ends. Raises IndexError for a process that
    isn't there.
    """
    cdef Py_ssize_t i
    cdef int32_t who, now
    for i in range(steps.shape[0]):
        if steps[i] == NOTHING:
            continue
        who = own[i]
        before[i] = latest[who]
        if steps[i] == MAPPING:
            now = i
            length[i] = 1 if before[i] == NONE else length[before[i]] + 1
        elif steps[i] == FORK and parents[i] != NONE:
            now = latest[parents[i]]
        else:  # execve; or a parent of which nothing is known
            now = NONE
        latest[who] = last[i] = now
