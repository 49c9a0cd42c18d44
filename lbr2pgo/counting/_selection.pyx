"""Which samples of a batch are counted, and what became of the others."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

# Steps that a sample is lost at, in their order; READ is all samples.
cpdef enum:
    READ
    OTHER_EVENT
    OTHER_PROCESS
    NOT_CHOSEN
    NO_STACK
    NOT_MAPPED
    STEPS


# What events may be besides counted, or not: of samples that are none that could be.
cpdef enum:
    BESIDE = 2


def select(event, weight, wanted, is_own, is_chosen, has_stack, spaces):
    steps = np.zeros(STEPS, np.uint64)
    flags = [each.view(np.uint8) for each in (wanted, is_own, is_chosen, has_stack)]
    _select(event, weight, *flags, spaces, steps)
    return steps


def _select(
    const int32_t[::1] event,
    const uint64_t[::1] weight,
    const uint8_t[::1] wanted,
    const uint8_t[::1] is_own,
    const uint8_t[::1] is_chosen,
    const uint8_t[::1] has_stack,
    int64_t[::1] spaces,
    uint64_t[::1] steps,
):
    cdef Py_ssize_t i, last = wanted.shape[0] - 1
    cdef int lost
    cdef uint8_t role
    for i in range(event.shape[0]):
        role = wanted[event[i] if event[i] >= 0 else last]
        if role == BESIDE:
            spaces[i] = -1
            continue
        if not role:
            lost = OTHER_EVENT
        elif not is_own[i]:
            lost = OTHER_PROCESS
        elif not is_chosen[i]:
            lost = NOT_CHOSEN
        elif not has_stack[i]:
            lost = NO_STACK
        elif spaces[i] < 0:
            lost = NOT_MAPPED
        else:
            lost = READ
        steps[READ] += weight[i]
        if lost != READ:
            steps[lost] += weight[i]
            spaces[i] = -1


def count_entries(
    const uint64_t[::1] weight,
    const int64_t[::1] whole,
    const int64_t[::1] kept,
    const int64_t[::1] spaces,
):
    cdef uint64_t read = 0, dropped = 0
    cdef int64_t size
    cdef Py_ssize_t i
    for i in range(weight.shape[0]):
        if spaces[i] >= 0:
            size = whole[i + 1] - whole[i]
            read += weight[i] * <uint64_t>size
            dropped += weight[i] * <uint64_t>(size - kept[i + 1] + kept[i])
    return read, dropped
