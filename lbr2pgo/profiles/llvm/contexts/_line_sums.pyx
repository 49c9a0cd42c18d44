"""Sums of counts under pairs of numbers, in the order of these: lines by context, calls by line."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

from lbr2pgo.native.sums cimport saturating

cdef enum:
    FEW = 24  # rows that are put in order one by one


cdef struct Row:
    uint64_t key
    uint64_t count


cdef int _by_key(const void *a, const void *b) noexcept nogil:
    cdef uint64_t one = (<const Row *>a).key, other = (<const Row *>b).key
    return (one > other) - (one < other)


cdef void _insert(Row *rows, Py_ssize_t count) noexcept nogil:
    """Put few rows in order."""
    cdef Py_ssize_t i, at
    cdef Row row
    for i in range(1, count):
        row, at = rows[i], i
        while at > 0 and rows[at - 1].key > row.key:
            rows[at] = rows[at - 1]
            at -= 1
        rows[at] = row


cdef bint _is_ordered(const Row *rows, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(1, count):
        if rows[i - 1].key > rows[i].key:
            return False
    return True


cdef Py_ssize_t _summed(Row *rows, Py_ssize_t count, Row *out) noexcept nogil:
    """Put the rows of a group in order, and each key once behind the others; how many there are."""
    cdef Py_ssize_t i, found = 0
    if count <= FEW:
        _insert(rows, count)
    elif not _is_ordered(rows, count):
        qsort(rows, count, sizeof(Row), _by_key)
    for i in range(count):
        if found and out[found - 1].key == rows[i].key:
            out[found - 1].count = saturating(out[found - 1].count, rows[i].count)
        else:
            out[found] = rows[i]
            found += 1
    return found


cdef int64_t[::1] _bounds(const int64_t[::1] group, Py_ssize_t groups):
    """(groups + 1,): where the rows of each group begin if they stand together."""
    cdef int64_t[::1] bounds = np.zeros(groups + 1, np.int64)
    cdef Py_ssize_t i
    with nogil:
        for i in range(group.shape[0]):
            bounds[group[i] + 1] += 1
        for i in range(groups):
            bounds[i + 1] += bounds[i]
    return bounds


def summed(
    const int64_t[::1] group, const uint64_t[::1] key, const uint64_t[::1] count,
    Py_ssize_t groups,
):
    cdef int64_t[::1] bounds = _bounds(group, groups), offsets = np.zeros(groups + 1, np.int64)
    cdef int64_t[::1] free_at = np.array(bounds)
    cdef Py_ssize_t i, size = group.shape[0], used = 0
    cdef Row *rows = <Row *>malloc((size + 1) * sizeof(Row))
    cdef uint64_t[::1] keys, sums
    if rows is NULL:
        raise MemoryError
    try:
        with nogil:
            for i in range(size):
                rows[free_at[group[i]]].key = key[i]
                rows[free_at[group[i]]].count = count[i]
                free_at[group[i]] += 1
            for i in range(groups):  # what is summed takes no more room than what it is summed of
                used += _summed(rows + bounds[i], bounds[i + 1] - bounds[i], rows + used)
                offsets[i + 1] = used
        keys, sums = np.empty((2, used), np.uint64)
        with nogil:
            for i in range(used):
                keys[i], sums[i] = rows[i].key, rows[i].count
    finally:
        free(rows)
    return np.asarray(offsets), np.asarray(keys), np.asarray(sums)


def rows_of(
    const int64_t[::1] offsets, const uint64_t[::1] keys, const int64_t[::1] group,
    const uint64_t[::1] key,
):
    cdef int64_t[::1] found = np.full(group.shape[0], -1, np.int64)
    cdef Py_ssize_t i, low, high, middle
    with nogil:
        for i in range(group.shape[0]):
            low, high = offsets[group[i]], offsets[group[i] + 1]
            while low < high:
                middle = low + ((high - low) >> 1)
                if keys[middle] < key[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < offsets[group[i] + 1] and keys[low] == key[i]:
                found[i] = low
    return np.asarray(found)
