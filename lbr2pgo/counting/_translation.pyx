"""From run-time addresses to where an image says that they are."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    START, END, BIAS


cdef inline Py_ssize_t _piece_of(
    uint64_t address, Py_ssize_t begin, Py_ssize_t past, const uint64_t[:, ::1] pieces
) except -2 nogil:
    """The last of some ascending pieces that starts at or below an address, if it is in that."""
    cdef Py_ssize_t at = begin, middle
    while at < past:
        middle = at + ((past - at) >> 1)
        if pieces[middle, START] <= address:
            at = middle + 1
        else:
            past = middle
    return at - 1 if at > begin and address < pieces[at - 1, END] else -1


def translate(
    const int64_t[:] spaces,
    const uint64_t[:, :] addresses,
    const int64_t[::1] offsets,
    const uint64_t[:, ::1] pieces,
):
    image = np.zeros((addresses.shape[0], addresses.shape[1]), np.uint64)
    piece = np.full((addresses.shape[0], addresses.shape[1]), -1, np.int64)
    cdef uint64_t[:, ::1] placed = image
    cdef int64_t[:, ::1] number = piece
    cdef Py_ssize_t i, k, begin, past, found = -1
    cdef int64_t space
    cdef uint64_t address
    if pieces.shape[1] != 3:
        raise ValueError("pieces have three columns")
    if spaces.shape[0] != addresses.shape[0]:
        raise ValueError("each row of addresses has a space")
    with nogil:
        for i in range(addresses.shape[0]):
            space = spaces[i]
            if space < 0:
                continue
            begin, past = offsets[space], offsets[space + 1]
            for k in range(addresses.shape[1]):
                address = addresses[i, k]
                # Neighbours mostly lie in one piece.
                if not (begin <= found < past and pieces[found, START] <= address < pieces[found, END]
                        and (found + 1 == past or address < pieces[found + 1, START])):
                    found = _piece_of(address, begin, past, pieces)
                if found >= 0:
                    placed[i, k] = address - pieces[found, BIAS]
                    number[i, k] = found - begin
    return image, piece
