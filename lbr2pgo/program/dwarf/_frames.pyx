"""Inline frames: the functions around addresses, and what each frame shows.

Source: LLVM: DWARFContext.cpp getInliningInfoForAddress.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t

from lbr2pgo.program.dwarf._functions cimport Description, Die
from lbr2pgo.program.dwarf._lines cimport Found


cdef inline int64_t _outer(const Die *die) noexcept nogil:
    """Row of the frame around a DIE, -1 if it is the outermost: chains end at a function."""
    return -1 if die.is_subprogram else die.parent


def chain_offsets(const int64_t[::1] leaves, const Die[::1] dies, Py_ssize_t most):
    offsets = np.zeros(leaves.shape[0] + 1, np.int64)
    cdef int64_t[::1] out = offsets
    cdef Py_ssize_t i, length, cut = 0
    cdef int64_t row
    with nogil:
        for i in range(leaves.shape[0]):
            row, length = leaves[i], 0
            while row >= 0 and length < most:
                length += 1
                row = _outer(&dies[row])
            cut += row >= 0
            out[i + 1] = out[i] + length
    return offsets, cut


def chains(const int64_t[::1] leaves, const Die[::1] dies, const int64_t[::1] offsets):
    rows = np.empty(offsets[leaves.shape[0]], np.int32)
    cdef int32_t[::1] out = rows
    cdef Py_ssize_t i, at
    cdef int64_t row
    with nogil:
        for i in range(leaves.shape[0]):
            row = leaves[i]
            for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
                out[at] = row
                row = _outer(&dies[row])
    return rows


def scopes(const int64_t[::1] leaves, const Die[::1] dies, Py_ssize_t most):
    is_around = np.zeros(dies.shape[0], np.bool_)
    numbers = np.full(dies.shape[0], -1, np.int32)
    leaf_numbers = np.full(leaves.shape[0], -1, np.int32)
    cdef cython.uchar[::1] around = is_around.view(np.uint8)
    cdef int32_t[::1] number = numbers, leaf_number = leaf_numbers
    cdef int32_t[::1] depth = np.empty(dies.shape[0], np.int32)
    cdef Py_ssize_t i, cut = 0, count = 0
    cdef int64_t row
    with nogil:
        for i in range(dies.shape[0]):  # outer ones stand before inner ones
            row = _outer(&dies[i])
            depth[i] = depth[row] + 1 if row >= 0 else 1
        for i in range(leaves.shape[0]):
            row = leaves[i]
            if row >= 0 and depth[row] > most:
                cut += 1
            elif row >= 0:
                around[row] = True
        for i in range(dies.shape[0] - 1, -1, -1):
            row = _outer(&dies[i])
            if around[i] and row >= 0:
                around[row] = True
        for i in range(dies.shape[0]):
            if around[i]:
                number[i] = count
                count += 1
        for i in range(leaves.shape[0]):
            row = leaves[i]
            if row >= 0 and depth[row] <= most:
                leaf_number[i] = number[row]
    parents = np.empty(count, np.int32)
    cdef int32_t[::1] parent = parents
    with nogil:
        for i in range(dies.shape[0]):
            if around[i]:
                row = _outer(&dies[i])
                parent[number[i]] = number[row] if row >= 0 else -1
    return is_around, parents, leaf_numbers, cut


def fill_frames(
    const int64_t[::1] offsets, const int32_t[::1] die, const Found[::1] leaf,
    const Description[::1] described,
):
    columns = [np.zeros(die.shape[0], np.uint32) for _ in range(4)]
    cdef uint32_t[::1] file = columns[0], line = columns[1], discriminator = columns[2]
    cdef uint32_t[::1] start_line = columns[3]
    cdef const Description *inner
    cdef Py_ssize_t i, last
    cdef int64_t at
    with nogil:
        for i in range(leaf.shape[0]):
            last = offsets[i + 1] - 1
            for at in range(offsets[i], offsets[i + 1]):
                if die[at] >= 0:
                    start_line[at] = described[die[at]].decl_line
                if at == last:
                    file[at], line[at] = leaf[i].file, leaf[i].line
                    discriminator[at] = leaf[i].discriminator
                else:
                    inner = &described[die[at + 1]]
                    file[at], line[at] = inner.call_file, inner.call_line
                    discriminator[at] = inner.discriminator
    return tuple(columns)
