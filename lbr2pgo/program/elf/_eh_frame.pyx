"""`.eh_frame` and exception tables: what they say of where code is."""

import numpy as np

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

from lbr2pgo.program.elf._bytes cimport (
    UNKNOWN_FORM,
    Bytes,
    Cursor,
    Length,
    bytes_of,
    cursor,
    fail,
    fixed,
    has,
    initial_length,
    skip,
    skip_leb,
    sleb,
    uleb,
)
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

# Pointer encodings (LSB Core, "DWARF Exception Header Encoding").
cdef enum:
    DW_EH_PE_uleb128 = 0x01
    DW_EH_PE_udata2 = 0x02
    DW_EH_PE_udata4 = 0x03
    DW_EH_PE_udata8 = 0x04
    DW_EH_PE_sleb128 = 0x09
    DW_EH_PE_sdata2 = 0x0A
    DW_EH_PE_sdata4 = 0x0B
    DW_EH_PE_sdata8 = 0x0C
    DW_EH_PE_absptr = 0x00
    DW_EH_PE_pcrel = 0x10
    DW_EH_PE_omit = 0xFF
    FORM = 0x0F
    RELATIVE_TO = 0x70


cdef uint64_t _number(Cursor *c, uint8_t form) noexcept nogil:
    """A number of the form that an encoding's low half names."""
    if form in (DW_EH_PE_absptr, DW_EH_PE_udata8, DW_EH_PE_sdata8):
        return fixed(c, 8)
    if form == DW_EH_PE_udata4:
        return fixed(c, 4)
    if form == DW_EH_PE_sdata4:
        return <uint64_t><int32_t>fixed(c, 4)
    if form == DW_EH_PE_udata2:
        return fixed(c, 2)
    if form == DW_EH_PE_sdata2:
        return <uint64_t><int16_t>fixed(c, 2)
    if form == DW_EH_PE_uleb128:
        return uleb(c)
    if form == DW_EH_PE_sleb128:
        return sleb(c)
    fail(c, UNKNOWN_FORM)
    return 0


cdef uint64_t pointer(Cursor *c, uint64_t section, uint8_t encoding) noexcept nogil:
    """An encoded pointer; a null pointer is relative to nothing."""
    cdef uint64_t here = section + <uint64_t>c.at
    cdef uint64_t value = _number(c, encoding & FORM)
    cdef uint8_t base = encoding & RELATIVE_TO
    if base not in (0, DW_EH_PE_pcrel):  # no toolchain for our architectures emits others
        fail(c, UNKNOWN_FORM)
    return value + here if base and value else value


cdef bint _read_common(Cursor c, uint64_t section, int64_t body, Common *common) noexcept nogil:
    """Read a common information entry from its version on; whether it makes sense."""
    cdef uint8_t version = <uint8_t>fixed(&c, 1), letter
    cdef int64_t letters = c.at
    cdef uint64_t augmentation
    common.body, common.pointers, common.lsda = body, DW_EH_PE_absptr, DW_EH_PE_omit
    while fixed(&c, 1):
        pass
    if version >= 4:
        skip(&c, 2)  # sizes of addresses and segments
    common.step = uleb(&c)
    skip_leb(&c)  # data alignment
    if version == 1:
        skip(&c, 1)  # return address register
    else:
        skip_leb(&c)
    if c.at < 0:
        return False
    common.has_augmentation = c.data[letters] == c"z"
    common.at, common.end = c.at, c.end
    if common.has_augmentation:
        augmentation = uleb(&c)
        common.at = c.at
        if has(&c, augmentation):
            common.at += <int64_t>augmentation
        letters += 1
        while c.data[letters]:
            letter = c.data[letters]
            if letter == c"R":
                common.pointers = <uint8_t>fixed(&c, 1)
            elif letter == c"L":
                common.lsda = <uint8_t>fixed(&c, 1)
            elif letter == c"P":
                pointer(&c, section, <uint8_t>fixed(&c, 1))
            letters += 1
    return c.at >= 0


cdef int64_t _owner(const Growing *commons, int64_t at) noexcept nogil:
    """The common entry whose length stands at an offset, 4 or 12 bytes before its body; or -1."""
    cdef const Common *rows = <const Common *>commons.data
    cdef Py_ssize_t low = 0, high = commons.count, middle
    while low < high:  # the first whose body is not before the shorter form's
        middle = (low + high) // 2
        if rows[middle].body < at + 4:
            low = middle + 1
        else:
            high = middle
    if low < commons.count and rows[low].body in (at + 4, at + 12):
        return low
    return -1


cdef bint _read_entry(
    Cursor c, uint64_t section, const Common *common, Entry *entry
) noexcept nogil:
    """Read a frame description entry from its start on; whether it makes sense."""
    cdef uint64_t augmentation
    entry.start = pointer(&c, section, common.pointers)
    entry.size = pointer(&c, section, common.pointers & FORM)
    entry.lsda, entry.at, entry.end = 0, c.at, c.end
    if common.has_augmentation:
        augmentation = uleb(&c)
        entry.at = c.at
        if has(&c, augmentation):
            entry.at += <int64_t>augmentation
        if augmentation and common.lsda != DW_EH_PE_omit:
            entry.lsda = pointer(&c, section, common.lsda)
    return c.at >= 0 and entry.size <= ~<uint64_t>0 - entry.start


cdef int64_t _read_owner(Section section, Cursor *c, int64_t offset_size) noexcept nogil:
    """Where the common entry is that an entry names; -1 if it is one itself.

    LSB Core, "The .eh_frame section": a distance back, 0 for a common entry. DWARF 5, 6.4.1: an
    offset, all ones for a common entry.
    """
    cdef int64_t here = c.at
    cdef uint64_t value = fixed(c, offset_size if section.is_debug else 4)
    if not section.is_debug:
        return here - <int64_t>value if value else -1
    return -1 if value == ~<uint64_t>0 >> (64 - 8 * offset_size) else <int64_t>value


cdef int64_t walk(
    Section section, Growing *commons, Growing *entries, int64_t *damaged
) except -1 nogil:
    """Read all entries; where reading ended, since what follows can't be told apart."""
    cdef int64_t at = 0, body, end, owner
    cdef Length length
    cdef Cursor c
    cdef Common common
    cdef Entry entry
    while at + 4 <= section.bytes.size:
        c = cursor(section.bytes, at, section.bytes.size)
        length = initial_length(&c)
        if length.value == 0 and c.at == at + 4:
            at = c.at  # a terminator: linkers may put several inputs behind one another
            continue
        if length.value < 0 or length.value > section.bytes.size - c.at:
            return at
        body, end = c.at, c.at + length.value
        c.end = end
        owner = _read_owner(section, &c, length.offset_size)
        if c.at < 0:
            damaged[0] += 1
        elif owner == -1:
            if _read_common(c, section.address, body, &common):
                (<Common *>add(commons))[0] = common
            else:
                damaged[0] += 1
        else:
            entry.common = _owner(commons, owner)
            if entry.common >= 0 and _read_entry(
                c, section.address, &(<const Common *>commons.data)[entry.common], &entry
            ):
                (<Entry *>add(entries))[0] = entry
            else:
                damaged[0] += 1
        at = end
    return section.bytes.size


def read_entries(const uint8_t[::1] data, uint64_t address):
    cdef Section section
    cdef Py_ssize_t columns = sizeof(Entry) // sizeof(uint64_t)
    cdef Growing commons = growing(sizeof(Common)), entries = growing(sizeof(Entry))
    cdef int64_t damaged = 0, end
    section.bytes, section.address, section.is_debug = bytes_of(data), address, False
    try:
        with nogil:
            end = walk(section, &commons, &entries, &damaged)
        rows = np.frombuffer(content(&entries), np.uint64).reshape(-1, columns)
        return rows[:, :3], damaged, end
    finally:
        release(&commons)
        release(&entries)


cdef int _read_pads(
    Cursor c, uint64_t section, uint64_t start, uint64_t size, Growing *pads
) except -1 nogil:
    """Read the call sites of one function, at most as many as it has bytes."""
    cdef uint64_t base = start, pad, length, sites = 0
    cdef int64_t end
    cdef uint8_t encoding = <uint8_t>fixed(&c, 1)
    if encoding != DW_EH_PE_omit:
        base = pointer(&c, section, encoding)
    if fixed(&c, 1) != DW_EH_PE_omit:
        skip_leb(&c)  # where the types are
    encoding = <uint8_t>fixed(&c, 1)
    length = uleb(&c)
    if c.at < 0:
        return 0
    end = c.at + <int64_t>length if length < <uint64_t>(c.end - c.at) else c.end
    while c.at < end and sites < size:
        sites += 1
        pointer(&c, section, encoding)  # first instruction
        pointer(&c, section, encoding)  # length
        pad = pointer(&c, section, encoding)
        skip_leb(&c)  # action
        if c.at < 0:
            return 0
        if pad == 0:
            continue
        if base + pad - start > size:  # before the start, too: these numbers wrap
            return 0
        (<uint64_t *>add(pads))[0] = base + pad
    return 0


def landing_pads(
    const uint8_t[::1] data,
    uint64_t address,
    const uint64_t[::1] starts,
    const uint64_t[::1] sizes,
    const uint64_t[::1] lsdas,
):
    cdef Bytes section = bytes_of(data)
    cdef Growing pads = growing(sizeof(uint64_t))
    cdef Py_ssize_t i, count = starts.shape[0]
    try:
        with nogil:
            for i in range(count):
                _read_pads(
                    cursor(section, <int64_t>(lsdas[i] - address), section.size),
                    address, starts[i], sizes[i], &pads,
                )
        return np.frombuffer(content(&pads), np.uint64)
    finally:
        release(&pads)
