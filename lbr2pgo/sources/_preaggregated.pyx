"""The lines of BOLT's pre-aggregated profiles.

    [TR] START END FALLTHROUGH_END COUNT      B START END COUNT MISPREDICTED
    [Ffr] START END COUNT                     S ADDRESS COUNT        E NAME

An address is hexadecimal, with or without `BUILD_ID:` before it (LLVM: bolt/lib/Profile/
DataAggregator.cpp parseAggregatedLBREntry).
"""

from typing import NamedTuple

import numpy as np

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from lbr2pgo.sources._text cimport (
    hash_text, line_end, read_decimal, read_hex, skip_blanks, word_end,
)

cdef enum:
    MOST_ADDRESSES = 3
    # The shortest row is `S 0 1` and a newline.
    FEWEST_BYTES = 6
    NO_KIND = -1
    NO_IMAGE = 0

cdef struct Location:
    uint64_t address
    uint64_t image  # hash of the build-id, which stands at
    Py_ssize_t start
    Py_ssize_t end

cdef struct Row:
    uint8_t kind
    Location locations[MOST_ADDRESSES]
    uint64_t count
    uint64_t mispredicted


class Rows(NamedTuple):
    kind: object
    address: object
    image: object
    amount: object
    mispredicted: object
    images: dict
    bad_lines: int


cdef int _address_count(uint8_t kind) noexcept nogil:
    """Addresses in a row of this kind, NO_KIND if there is no such kind."""
    if kind in b"TR":
        return 3
    if kind in b"BFfr":
        return 2
    return 1 if kind == b"S" else NO_KIND


cdef Py_ssize_t _read_location(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Location *location
) noexcept nogil:
    """Read one address, and the build-id before it; returns `place` if there is none."""
    cdef Py_ssize_t stop, after = word_end(text, place, end), colon = after
    while colon > place and text[colon - 1] != b":":
        colon -= 1
    if colon > place + 1:
        location.start, location.end = place, colon - 1
        location.image = hash_text(text, place, colon - 1)
    stop = read_hex(text, colon, after, &location.address)
    return after if stop == after and stop > colon else place


cdef Py_ssize_t _read_count(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *count
) noexcept nogil:
    """Read a decimal number that is a whole word; returns `place` if there is none."""
    cdef Py_ssize_t start = skip_blanks(text, place, end)
    cdef Py_ssize_t after = read_decimal(text, start, end, count)
    return after if after > start and after == word_end(text, start, end) else place


cdef bint _read_row(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Row *row
) noexcept nogil:
    """Read the row whose letter stands at `place`."""
    cdef Py_ssize_t start, here = place + 1
    cdef int i, addresses = _address_count(text[place])
    memset(row, 0, sizeof(Row))
    row.kind = text[place]
    if addresses == NO_KIND or word_end(text, place, end) != here:
        return False
    for i in range(addresses):
        start = skip_blanks(text, here, end)
        here = _read_location(text, start, end, &row.locations[i])
        if here == start:
            return False
    start = here
    here = _read_count(text, start, end, &row.count)
    if here > start and row.kind == b"B":
        start = here
        here = _read_count(text, start, end, &row.mispredicted)
    return here > start and skip_blanks(text, here, end) == end


cdef bint _is_event(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    """Whether a line names an event."""
    return text[place] == b"E" and word_end(text, place, end) == place + 1


def read_rows(const uint8_t[::1] text):
    cdef Py_ssize_t n = text.shape[0] // FEWEST_BYTES + 1
    cdef uint8_t[::1] kind = np.empty(n, np.uint8)
    cdef uint64_t[:, ::1] address = np.empty((n, MOST_ADDRESSES), np.uint64)
    cdef uint64_t[:, ::1] image = np.empty((n, MOST_ADDRESSES), np.uint64)
    cdef uint64_t[::1] amount = np.empty(n, np.uint64)
    cdef uint64_t[::1] mispredicted = np.empty(n, np.uint64)
    cdef const uint8_t *start = &text[0] if text.shape[0] else NULL
    cdef Py_ssize_t i, first, stop, place = 0, end = text.shape[0], found = 0, bad = 0
    cdef uint64_t last_image = NO_IMAGE
    cdef Row row
    images = {}
    with nogil:
        while place < end:
            stop = line_end(start, place, end)
            first = skip_blanks(start, place, stop)
            place = stop + 1
            if first == stop or start[first] == b"#":
                continue
            if not _read_row(start, first, stop, &row):
                bad += not _is_event(start, first, stop)
                continue
            kind[found] = row.kind
            amount[found] = row.count
            mispredicted[found] = row.mispredicted
            for i in range(MOST_ADDRESSES):
                address[found, i] = row.locations[i].address
                image[found, i] = row.locations[i].image
                if row.locations[i].image not in (NO_IMAGE, last_image):
                    last_image = row.locations[i].image
                    with gil:
                        images[last_image] = start[row.locations[i].start:row.locations[i].end]
            found += 1
    return Rows(
        np.asarray(kind[:found]), np.asarray(address[:found]), np.asarray(image[:found]),
        np.asarray(amount[:found]), np.asarray(mispredicted[:found]), images, bad,
    )
