"""Rows by their groups, which are numbers from 0 on, without sorting by them."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp

cdef struct Member:
    uint64_t first
    uint64_t second
    const uint8_t* text
    Py_ssize_t size
    int64_t row


def grouped(const int64_t[::1] group, Py_ssize_t groups):
    cdef Py_ssize_t i
    cdef int64_t[::1] past = np.zeros(groups + 2, np.int64)
    with nogil:
        for i in range(group.shape[0]):
            if group[i] >= 0:
                past[group[i] + 2] += 1
        for i in range(2, groups + 2):
            past[i] += past[i - 1]
    cdef int64_t[::1] rows = np.empty(past[groups + 1], np.int64)
    with nogil:
        for i in range(group.shape[0]):
            if group[i] >= 0:
                rows[past[group[i] + 1]] = i
                past[group[i] + 1] += 1
    return np.asarray(rows), np.asarray(past[: groups + 1])


cdef int _in_order(const void* one, const void* other) noexcept nogil:
    cdef const Member* a = <const Member*>one
    cdef const Member* b = <const Member*>other
    cdef int found = 0
    if a.first != b.first:
        return -1 if a.first < b.first else 1
    if a.second != b.second:
        return -1 if a.second < b.second else 1
    if a.size and b.size:
        found = memcmp(a.text, b.text, min(a.size, b.size))
    if found == 0:
        found = (a.size > b.size) - (a.size < b.size)
    return found if found else (a.row > b.row) - (a.row < b.row)


def order_groups(
    int64_t[::1] rows, const int64_t[::1] bounds, const uint64_t[::1] first,
    const uint64_t[::1] second, const int64_t[::1] name, names,
):
    cdef const uint8_t[::1] text = names.text
    cdef const int64_t[::1] start = names.start, end = names.end
    cdef Py_ssize_t group, i, begin, size, largest = int(np.diff(bounds).max(initial=0))
    cdef int64_t row
    cdef Member* members = <Member*>malloc(max(largest, 1) * sizeof(Member))
    if members is NULL:
        raise MemoryError
    try:
        with nogil:
            for group in range(bounds.shape[0] - 1):
                begin, size = bounds[group], bounds[group + 1] - bounds[group]
                if size < 2:
                    continue
                for i in range(size):
                    row = rows[begin + i]
                    members[i].first, members[i].second = first[row], second[row]
                    members[i].size = end[name[row]] - start[name[row]]
                    if members[i].size:
                        members[i].text = &text[start[name[row]]]
                    members[i].row = row
                qsort(members, size, sizeof(Member), _in_order)
                for i in range(size):
                    rows[begin + i] = members[i].row
    finally:
        free(members)


def depth_first(const int64_t[::1] rows, const int64_t[::1] bounds):
    cdef Py_ssize_t count = rows.shape[0], done = 0, level = 0
    cdef int64_t[::1] at = np.empty(count + 1, np.int64), past = np.empty(count + 1, np.int64)
    cdef int64_t[::1] order = np.empty(count, np.int64), depth = np.empty(count, np.int64)
    at[0], past[0] = bounds[0], bounds[1]
    with nogil:
        while level >= 0:
            if at[level] == past[level]:
                level -= 1
                continue
            order[done], depth[done] = rows[at[level]], level
            at[level] += 1
            level += 1
            at[level], past[level] = bounds[order[done] + 1], bounds[order[done] + 2]
            done += 1
    return np.asarray(order), np.asarray(depth)
