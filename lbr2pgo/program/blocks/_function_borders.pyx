"""Borders of functions as BOLT draws them: loops over the symbols of a large program."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

NO_FUNCTION, NEW_FUNCTION, SAME_FUNCTION, SECONDARY_ENTRY = range(4)

cdef enum:
    _NEW = 1
    _SAME = 2
    _ENTRY = 3


cdef struct Body:
    uint64_t start
    uint64_t size
    uint64_t section_start
    uint64_t section_end


cdef inline bint _contains(const Body* body, uint64_t address) noexcept nogil:
    return address >= body.start and address - body.start < body.size


cdef inline bint _tolerates(
    const Body* body, uint64_t address, uint64_t size, bint is_label
) noexcept nogil:
    """Whether a symbol may stand inside (BOLT: BinaryFunction.cpp, isSymbolValidInScope)."""
    if not body.section_start <= address < body.section_end:
        return False
    return is_label or (size == 0 and _contains(body, address))


cdef inline uint8_t _role(
    const Body* body, uint64_t address, uint64_t size, bint is_function, bint is_label
) noexcept nogil:
    """What a symbol is, seen from the function before it."""
    cdef bint inside = _contains(body, address)
    cdef bint tolerated = _tolerates(body, address, size, is_label)
    if not is_function:
        if inside or (body.size == 0 and tolerated):
            return 0
    elif inside and address != body.start:
        return 0 if tolerated else _ENTRY
    return _SAME if address == body.start else _NEW


def symbol_roles(
    const uint64_t[::1] address,
    const uint64_t[::1] size,
    const uint64_t[::1] body_size,
    const int32_t[::1] section,
    const uint8_t[::1] is_function,
    const uint8_t[::1] is_label,
    const uint64_t[:, ::1] sections,
):
    cdef Py_ssize_t i, count = address.shape[0]
    cdef uint8_t[::1] roles = np.zeros(count, np.uint8)
    cdef Body body
    cdef bint found = False
    with nogil:
        for i in range(count):
            if section[i] < 0 or address[i] == sections[section[i], 1]:
                continue
            if found:
                roles[i] = _role(&body, address[i], size[i], is_function[i], is_label[i])
            else:
                roles[i] = _NEW
            if roles[i] == _NEW:
                found = True
                body.start, body.size = address[i], body_size[i]
                body.section_start, body.section_end = (
                    sections[section[i], 0], sections[section[i], 1]
                )
            elif roles[i] == _SAME and body_size[i] > body.size:
                body.size = body_size[i]
    return np.asarray(roles)


def function_limits(
    const uint64_t[::1] start,
    const uint64_t[::1] size,
    const uint64_t[:, ::1] section,
    const uint64_t[::1] address,
    const uint64_t[::1] symbol_size,
    const uint8_t[::1] is_label,
):
    cdef Py_ssize_t i, k = 0, count = start.shape[0], symbols = address.shape[0]
    cdef uint64_t[::1] limits = np.zeros(count, np.uint64)
    cdef uint8_t[::1] entries = np.zeros(symbols, np.uint8)
    cdef Body body
    cdef uint64_t limit
    with nogil:
        for i in range(count):
            body.start, body.size = start[i], size[i]
            body.section_start, body.section_end = section[i, 0], section[i, 1]
            limit = section[i, 1]
            if i + 1 < count and start[i + 1] < limit:
                limit = start[i + 1]
            while k < symbols and address[k] <= body.start:
                k += 1
            while k < symbols and (i + 1 == count or address[k] < start[i + 1]):
                if not _tolerates(&body, address[k], symbol_size[k], is_label[k]):
                    if address[k] < limit:
                        limit = address[k]
                    break
                entries[k] = 1
                k += 1
            limits[i] = limit
    return np.asarray(limits), np.asarray(entries).view(np.bool_)
