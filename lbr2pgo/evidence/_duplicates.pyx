"""Samples whose second entry is a copy of the newest."""

from libc.stdint cimport int64_t

from lbr2pgo.native.walk cimport DUPLICATE, Stacks, Walk, begin, step


def list_duplicates(Stacks stacks, int64_t[::1] samples):
    cdef Walk walk
    cdef Py_ssize_t i, found = 0
    with nogil:
        for i in range(stacks.size):
            # Only a stack's second entry can be one.
            if begin(stacks, i, &walk) and step(&walk) and step(&walk):
                if walk.reason == DUPLICATE:
                    samples[found] = i
                    found += 1
    return found
