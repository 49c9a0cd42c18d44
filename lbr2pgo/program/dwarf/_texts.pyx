"""Strings of DWARF, by the places that other loops give."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from lbr2pgo.native.text_numbers cimport TextNumbers
from lbr2pgo.program.dwarf cimport _entries as entries

TEXT_SECTIONS = entries.TEXT_SECTIONS


def number_texts(
    const uint8_t[::1] part, const int64_t[::1] starts, int64_t most, TextNumbers known
):
    cdef Py_ssize_t i = 0, size = part.shape[0]
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t left = most
    numbers = np.empty(starts.shape[0], np.int64)
    cdef int64_t[::1] out = numbers
    with nogil:
        while i < starts.shape[0]:
            start = &part[starts[i]]
            end = <const uint8_t *>memchr(start, 0, size - starts[i])
            if end is NULL or left < 0:
                break
            left -= end - start
            out[i] = known.number_of(start, end - start)
            i += 1
    return numbers[:i], most - left
