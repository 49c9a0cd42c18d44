"""The section .note.bolt_bat: where code that llvm-bolt moved stood before.

Source: LLVM 22: bolt/lib/Profile/BoltAddressTranslation.cpp, parse.
"""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t

from lbr2pgo.native.growing cimport Growing, add, content, growing, release
from lbr2pgo.program._numbers cimport CUT_NUMBER, LARGE_NUMBER, Reader, fixed, leb

PIECE_COLUMNS, ENTRY_COLUMNS = 2, 4
FINE, CUT, OUT_OF_RANGE = 0, CUT_NUMBER, LARGE_NUMBER

cdef enum:
    IS_BRANCH = 1
    LARGEST = 0xFFFFFFFF  # of offsets in a function, doubled


cdef struct Piece:
    uint64_t address
    uint64_t parent  # number of the piece that the function begins with

cdef struct Entry:
    uint64_t piece
    uint64_t output
    uint64_t input
    uint64_t is_branch

cdef struct Tables:
    Growing pieces
    Growing entries
    uint64_t previous  # address that the next one is counted from


cdef inline bint _is_set(const uint8_t[::1] data, Py_ssize_t bits, uint64_t i) except -1 nogil:
    return data[bits + <Py_ssize_t>(i >> 3)] >> (i & 7) & 1


cdef int _read_entries(
    const uint8_t[::1] data, Reader *r, uint64_t address, uint64_t skew, Tables *tables
) except -1 nogil:
    """The blocks and branches of a piece.

    As many as at the beginning did not move against each other have one offset instead of two.
    """
    cdef uint64_t count = leb(data, r), alike = leb(data, r)
    cdef uint64_t piece = tables.pieces.count - 1, entered = 0, output, bytes_left, i
    cdef Py_ssize_t bits = r.at
    cdef Entry *entry
    bytes_left = data.shape[0] - r.at
    if r.problem or alike // 8 > bytes_left or (alike + 7) // 8 > bytes_left:
        r.problem = r.problem or CUT_NUMBER
        return 0
    r.at += <Py_ssize_t>((alike + 7) // 8)
    for i in range(count):
        tables.previous += leb(data, r)
        output = tables.previous - address
        if i < alike:
            entered = (output + skew) << 1 | _is_set(data, bits, i)
        else:
            entered += leb(data, r, True)
        if not r.problem and (output > LARGEST or entered > LARGEST):
            r.problem = LARGE_NUMBER
        if r.problem:
            return 0
        entry = <Entry *>add(&tables.entries)
        entry.piece, entry.output, entry.input = piece, output, entered >> 1
        entry.is_branch = entered & IS_BRANCH
        if not entry.is_branch:
            fixed(data, r, 8)  # the block's hash
            leb(data, r)  # its number
    return 0


cdef int _pass_entrances(const uint8_t[::1] data, Reader *r, uint64_t count) except -1 nogil:
    """Pass over where else a function is entered."""
    cdef uint64_t place = 0, i
    for i in range(count):
        place += leb(data, r)
        if not r.problem and place > LARGEST:
            r.problem = LARGE_NUMBER
        if r.problem:
            break
    return 0


cdef int _read_pieces(
    const uint8_t[::1] data, Reader *r, Py_ssize_t hot, Tables *tables
) except -1 nogil:
    """The pieces that functions begin with, or, with their number, those that were split off."""
    cdef uint64_t count = leb(data, r), parent = 0, skew, entrances, address, i
    cdef bint is_cold = hot >= 0
    cdef Piece *piece
    for i in range(count):
        if r.problem:
            break
        address = tables.previous + leb(data, r)
        tables.previous, skew, entrances = address, 0, 0
        if is_cold:
            parent += leb(data, r)
            skew = leb(data, r)
            if not r.problem and (parent >= <uint64_t>hot or skew > LARGEST):
                r.problem = LARGE_NUMBER
        if r.problem:
            break
        piece = <Piece *>add(&tables.pieces)
        piece.address = address
        piece.parent = parent if is_cold else <uint64_t>(tables.pieces.count - 1)
        if not is_cold:
            fixed(data, r, 8)  # the function's hash
            leb(data, r)  # how many blocks it had
            entrances = leb(data, r)
        _read_entries(data, r, address, skew, tables)
        _pass_entrances(data, r, entrances)
    return 0


def read_translation(const uint8_t[::1] data):
    cdef Reader r = Reader(0, 0)
    cdef Tables tables
    tables.pieces, tables.entries = growing(sizeof(Piece)), growing(sizeof(Entry))
    tables.previous = 0
    try:
        with nogil:
            _read_pieces(data, &r, -1, &tables)
            if not r.problem:
                _read_pieces(data, &r, tables.pieces.count, &tables)
        return (
            _columns(content(&tables.pieces), PIECE_COLUMNS),
            _columns(content(&tables.entries), ENTRY_COLUMNS),
            (r.problem, r.at),
        )
    finally:
        release(&tables.pieces)
        release(&tables.entries)


def _columns(rows, columns):
    return np.frombuffer(rows, np.uint64).reshape(-1, columns)
