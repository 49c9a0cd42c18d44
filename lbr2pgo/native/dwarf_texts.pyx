"""Strings of DWARF, by the places that other loops give."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr

from lbr2pgo.native.dwarf_bytes cimport Bytes, bytes_of
from lbr2pgo.native.dwarf_entries cimport TEXT_SECTIONS


cdef struct Text:
    const char *start  # NULL if there is none
    int64_t size


cdef class Texts:
    cdef Bytes[TEXT_SECTIONS] _sections
    cdef tuple _owners

    def __init__(self, *sections):
        cdef Py_ssize_t i
        if len(sections) != TEXT_SECTIONS:
            raise ValueError(f"{len(sections)} sections of strings, not {TEXT_SECTIONS}")
        self._owners = sections
        for i in range(TEXT_SECTIONS):
            self._sections[i] = bytes_of(sections[i])

    cdef int64_t _budget(self) noexcept nogil:
        """Bytes to read for one question: hostile places may share one endless string."""
        cdef int64_t i, size = 4096
        for i in range(TEXT_SECTIONS):
            size += 16 * self._sections[i].size
        return size

    cdef Text _at(self, int64_t place, int64_t *budget) noexcept nogil:
        """The string at a place, without the NUL that ends it."""
        cdef Text text = Text(NULL, 0)
        cdef Bytes section = self._sections[place % TEXT_SECTIONS if place >= 0 else 0]
        cdef int64_t offset = place // TEXT_SECTIONS
        cdef const uint8_t *end
        if place < 0 or offset >= section.size or budget[0] < 0:
            return text
        end = <const uint8_t *>memchr(section.data + offset, 0, section.size - offset)
        if end is NULL:
            budget[0] -= section.size - offset
            return text
        text.start = <const char *>section.data + offset
        text.size = end - (section.data + offset)
        budget[0] -= text.size
        return text

    def decode(self, const int64_t[::1] places):
        cdef int64_t budget = self._budget()
        cdef Py_ssize_t i
        cdef Text text
        found = []
        for i in range(places.shape[0]):
            text = self._at(places[i], &budget)
            found.append(
                None if text.start is NULL
                else PyUnicode_DecodeUTF8(text.start, text.size, "surrogateescape")
            )
        return found
