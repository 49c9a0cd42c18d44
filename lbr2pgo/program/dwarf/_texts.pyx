"""Strings of DWARF, by the places that other loops give."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from lbr2pgo.program.dwarf cimport _entries as entries

TEXT_SECTIONS = entries.TEXT_SECTIONS


def decode_texts(const uint8_t[::1] part, const int64_t[::1] starts, int64_t most):
    cdef Py_ssize_t i, size = part.shape[0]
    cdef const uint8_t *start
    cdef const uint8_t *end
    texts = []
    for i in range(starts.shape[0]):
        start = &part[starts[i]]
        end = <const uint8_t *>memchr(start, 0, size - starts[i])
        if end is NULL or most < 0:
            break
        most -= end - start
        texts.append(PyUnicode_DecodeUTF8(<const char *>start, end - start, "surrogateescape"))
    return texts
