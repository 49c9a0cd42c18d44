"""The section .llvm_bb_addr_map, versions 0 to 5, as clang writes it and lld links it.

Source: LLVM 22: lib/Object/ELF.cpp decodeBBAddrMapImpl, docs/Extensions.rst.
"""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t

from lbr2pgo.program._numbers cimport Reader, fixed, leb

NEWEST = 5
RANGE_COLUMNS = 3
BLOCK_COLUMNS = 6
FINE, CUT, UNKNOWN_VERSION, UNKNOWN_FEATURE = range(4)

cdef enum:
    NEWEST_VERSION = 5
    SMALLEST_RANGE = 9  # bytes of an address and the number of its blocks
    SMALLEST_BLOCK = 3  # of version 0, whose blocks have no id
    # Features (LLVM: BBAddrMap::Features)
    ENTRY_COUNT = 1
    FREQUENCIES = 2
    PROBABILITIES = 4
    MULTIPLE_RANGES = 8
    OMITS_BLOCKS = 16
    CALL_SITE_ENDS = 32
    HASHES = 64
    POST_LINK = 128
    KNOWN_FEATURES = 255
    IS_FINE = 0
    IS_CUT = 1
    IS_UNKNOWN_VERSION = 2
    IS_UNKNOWN_FEATURE = 3


cdef int _pass_numbers(const uint8_t[::1] data, Reader *r, uint64_t count) except -1 nogil:
    cdef uint64_t i
    for i in range(count):
        if r.problem:
            break
        leb(data, r)
    return 0


cdef int _pass_analysis(
    const uint8_t[::1] data, Reader *r, int feature, uint64_t blocks
) except -1 nogil:
    """What the compiler believed of the function's counts."""
    cdef uint64_t i, j, successors
    if feature & ENTRY_COUNT:
        leb(data, r)
    if not feature & (FREQUENCIES | PROBABILITIES):
        return 0
    for i in range(blocks):
        if r.problem:
            break
        if feature & FREQUENCIES:
            leb(data, r)
            if feature & POST_LINK:
                leb(data, r)
        if feature & PROBABILITIES:
            successors = leb(data, r)
            for j in range(successors):
                if r.problem:
                    break
                _pass_numbers(data, r, 3 if feature & POST_LINK else 2)
    return 0


cdef struct Counts:
    Py_ssize_t ranges
    Py_ssize_t blocks


cdef int _read_block(
    const uint8_t[::1] data, Reader *r, int version, int feature, uint64_t index, uint64_t start,
    uint64_t *end, uint64_t[:, ::1] blocks, Counts *n,
) except -1 nogil:
    cdef uint64_t identity = leb(data, r) if version >= 2 else index
    cdef uint64_t offset = leb(data, r), calls = 0, size, i
    if version >= 1:
        offset += end[0]
    if feature & CALL_SITE_ENDS:
        for i in range(leb(data, r)):
            if r.problem:
                break
            calls += leb(data, r)
    size = calls + leb(data, r)
    end[0] = offset + size
    blocks[n.blocks, 3] = leb(data, r)
    blocks[n.blocks, 4] = fixed(data, r, 8) if feature & HASHES else 0
    blocks[n.blocks, 0] = n.ranges
    blocks[n.blocks, 1] = identity
    blocks[n.blocks, 2] = start + offset
    blocks[n.blocks, 5] = size
    if not r.problem:
        n.blocks += 1
    return 0


cdef uint64_t _read_range(
    const uint8_t[::1] data, Reader *r, int version, int feature, uint64_t function,
    uint64_t[:, ::1] ranges, uint64_t[:, ::1] blocks, Counts *n,
) except? 0 nogil:
    """Gives how many blocks it says that it has."""
    cdef uint64_t start = fixed(data, r, 8), count = leb(data, r), i, end = 0
    if r.problem:
        return 0
    if not feature & OMITS_BLOCKS:
        for i in range(count):
            if r.problem:
                break
            _read_block(data, r, version, feature, i, start, &end, blocks, n)
    ranges[n.ranges, 0], ranges[n.ranges, 1], ranges[n.ranges, 2] = function, start, end
    n.ranges += 1
    return count


def read_block_map(const uint8_t[::1] data, bint has_versions):
    found_ranges = np.zeros((data.shape[0] // SMALLEST_RANGE + 1, RANGE_COLUMNS), np.uint64)
    found_blocks = np.zeros((data.shape[0] // SMALLEST_BLOCK + 1, BLOCK_COLUMNS), np.uint64)
    cdef uint64_t[:, ::1] ranges = found_ranges, blocks = found_blocks
    cdef Reader r = Reader(0, 0)
    cdef Counts n = Counts(0, 0), whole = Counts(0, 0)
    cdef int version = 0, feature = 0, problem = IS_FINE
    cdef Py_ssize_t start = 0
    cdef uint64_t function = 0, pieces, i, count
    with nogil:
        while r.at < data.shape[0]:
            start, whole = r.at, n
            if has_versions:
                version = <int>fixed(data, &r, 1)
                if version > NEWEST_VERSION:
                    problem = IS_UNKNOWN_VERSION
                    break
                feature = <int>fixed(data, &r, 2 if version >= 5 else 1)
                if feature & ~KNOWN_FEATURES:
                    problem = IS_UNKNOWN_FEATURE
                    break
            pieces = leb(data, &r) if feature & MULTIPLE_RANGES else 1
            count = 0
            for i in range(pieces):
                if r.problem:
                    break
                count += _read_range(data, &r, version, feature, function, ranges, blocks, &n)
            if not r.problem:
                _pass_analysis(data, &r, feature, count)
            if r.problem:
                problem = IS_CUT
                break
            function += 1
    if problem != IS_FINE:
        n, r.at = whole, start
    return (
        found_ranges[: n.ranges].copy(), found_blocks[: n.blocks].copy(),
        (problem, version, feature, r.at),
    )
