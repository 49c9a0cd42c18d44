"""Units of .debug_info: their headers, root DIEs, abbreviations, and the addresses they claim.

Source: DWARF 5, 6.1.2 and 7.5.1 to 7.5.3; LLVM: DWARFUnit.cpp for what ends a section,
DWARFDebugArangeSet.cpp for which sets of .debug_aranges are refused.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from lbr2pgo.program.elf._bytes cimport (
    Bytes,
    Cursor,
    Length,
    bytes_of,
    cursor,
    fixed,
    length_within,
    part_of,
    sleb,
    uleb,
)
from lbr2pgo.program.dwarf._entries cimport (
    ADDR_BASE,
    COMP_DIR,
    DWO_NAME,
    ENTRY_PC,
    GNU_ADDR_BASE,
    GNU_DWO_ID,
    GNU_DWO_NAME,
    GNU_RANGES_BASE,
    IN_INFO,
    LOW_PC,
    MAX_ATTRIBUTES,
    NAME,
    RANGES,
    RANGE_SLOTS,
    RNGLISTS_BASE,
    ROOT_SLOTS,
    STMT_LIST,
    STR_OFFSETS_BASE,
    Abbreviation,
    DW_TAG_inlined_subroutine,
    DW_TAG_subprogram,
    Parts,
    Range,
    Ranges,
    Step,
    Unit,
    encoding_of,
    put_ranges,
    read_attributes,
    slot_of,
    text_of,
)
from lbr2pgo.program.dwarf._forms cimport (
    DW_FORM_implicit_const,
    Encoding,
    Found,
    Value,
    address_of,
    form_size,
)
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

cdef enum:
    DW_UT_type = 2
    DW_UT_skeleton = 4
    DW_UT_split_compile = 5
    DW_UT_split_type = 6

cdef Unit _unit
cdef Range _range
UNIT = np.asarray(<Unit[:1]>&_unit).dtype
RANGE = np.asarray(<Range[:1]>&_range).dtype


cdef class Sections:
    def __init__(
        self, const uint8_t[::1] abbrev, const uint8_t[::1] addr, const uint8_t[::1] ranges,
        const uint8_t[::1] rnglists, const uint8_t[::1] str_offsets,
    ):
        memset(&self.parts, 0, sizeof(Parts))
        self.parts.abbrev = bytes_of(abbrev)
        self.parts.addr = bytes_of(addr)
        self.parts.ranges = bytes_of(ranges)
        self.parts.rnglists = bytes_of(rnglists)
        self.parts.str_offsets = bytes_of(str_offsets)
        self._owners = abbrev.base, addr.base, ranges.base, rnglists.base, str_offsets.base

    cdef Sections _with(self, object owner):
        """The same and what belongs to one more owner."""
        cdef Sections other = Sections.__new__(Sections)
        other.parts = self.parts
        other._owners = (*self._owners, owner)
        return other

    def with_info(self, const uint8_t[::1] part, int64_t start, int64_t size):
        cdef Sections other = self._with(part.base)
        other.parts.info = part_of(part, start, size)
        return other

    def with_line(self, const uint8_t[::1] part, int64_t start, int64_t size):
        cdef Sections other = self._with(part.base)
        other.parts.line = part_of(part, start, size)
        return other


cdef int64_t _read_header(Bytes info, int64_t position, Unit *unit) noexcept nogil:
    """Fill a unit from the header at a position: the next unit's position, -1 if it is damaged."""
    cdef Cursor c = cursor(info, position, info.end)
    cdef Length length = length_within(&c, info.size)
    cdef int64_t kind = 1
    unit.offset, unit.offset_size = position, length.offset_size
    if length.value < 0 or length.value > info.size - c.at:
        return -1
    unit.end = c.at + length.value
    c.end = min(c.end, unit.end)
    unit.version = <int64_t>fixed(&c, 2)
    if unit.version >= 5:
        kind = <int64_t>fixed(&c, 1)
        unit.address_size = <int64_t>fixed(&c, 1)
    unit.abbrev = _offset(fixed(&c, unit.offset_size))
    if unit.version < 5:
        unit.address_size = <int64_t>fixed(&c, 1)
    unit.is_type = kind in (DW_UT_type, DW_UT_split_type)
    unit.has_dwo_id = kind in (DW_UT_skeleton, DW_UT_split_compile)
    unit.dwo_id = fixed(&c, 8) if unit.has_dwo_id or unit.is_type else 0
    unit.type = position + _offset(fixed(&c, unit.offset_size)) if unit.is_type else 0
    unit.die = c.at
    if c.at < 0 or not 2 <= unit.version <= 5 or unit.address_size not in (4, 8):
        return -1
    return unit.end


cdef int64_t _offset(uint64_t number) noexcept nogil:
    """A position in a section; one that no section has is such that it can be added to."""
    cdef int64_t far = <int64_t>1 << 60
    return <int64_t>number if number < <uint64_t>far else far


cdef inline int64_t _slot(int64_t tag, uint64_t attribute) noexcept nogil:
    """Where a DIE's value is kept by a walk over its unit."""
    cdef bint is_function = tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine)
    return min(slot_of(attribute), RANGE_SLOTS) if is_function else RANGE_SLOTS


cdef void _add_step(Abbreviation *row, Step step, Step *steps) noexcept nogil:
    """Add a step to those of a declaration, which may be a part of the last one."""
    cdef Step *last = &steps[row.steps - 1]
    cdef bint is_passed = step.slot == RANGE_SLOTS and step.size >= 0
    if is_passed and row.steps > 0 and last.slot == RANGE_SLOTS and last.size >= 0:
        last.size += step.size
    else:
        steps[row.steps] = step
        row.steps += 1


cdef int64_t _read_abbreviation(
    Bytes abbrev, int64_t position, Encoding encoding, Abbreviation *row, Step *steps
) noexcept nogil:
    """Fill `row` with the declaration at a position: the next one's position, -1 at the end.

    `steps` has room for MAX_ATTRIBUTES of them.
    """
    cdef Cursor c = cursor(abbrev, position, abbrev.end)
    cdef uint64_t tag, attribute
    cdef Step step
    memset(row, 0, sizeof(Abbreviation))
    row.code = uleb(&c)
    if c.at < 0 or row.code == 0:
        return -1
    tag = uleb(&c)
    row.tag = <int64_t>tag if tag <= 0xFFFF else 0
    row.children = fixed(&c, 1) != 0
    row.specs = c.at
    for _ in range(MAX_ATTRIBUTES):
        attribute, step.form = uleb(&c), uleb(&c)
        if attribute == 0 and step.form == 0:
            return c.at
        step.constant = sleb(&c) if step.form == DW_FORM_implicit_const else 0
        step.size = form_size(step.form, encoding)
        step.slot = _slot(row.tag, attribute)
        row.has_ranges |= slot_of(attribute) in (LOW_PC, RANGES)
        _add_step(row, step, steps)
    return -1


cdef int _by_code(const void *a, const void *b) noexcept nogil:
    """Order of declarations; of those with one code the first counts."""
    cdef const Abbreviation *one = <const Abbreviation *>a
    cdef const Abbreviation *other = <const Abbreviation *>b
    if one.code != other.code:
        return -1 if one.code < other.code else 1
    return -1 if one.specs < other.specs else 1


cdef class Abbreviations:
    def __cinit__(self):
        self._rows, self._steps = growing(sizeof(Abbreviation)), growing(sizeof(Step))
        self._places = {}

    def __dealloc__(self):
        release(&self._rows)
        release(&self._steps)

    def __len__(self):
        return self._rows.count

    cdef const Abbreviation *rows(self) noexcept nogil:
        return <const Abbreviation *>self._rows.data

    cdef const Step *steps(self) noexcept nogil:
        return <const Step *>self._steps.data

    def load(self, Sections sections, Unit[::1] units, wanted):
        cdef Unit *unit
        for index in wanted:
            unit = &units[index]
            key = unit.abbrev, unit.version, unit.address_size, unit.offset_size
            if key not in self._places:
                self._places[key] = self._rows.count, self._read(sections.parts.abbrev, unit)
            unit.first_abbreviation, unit.abbreviations = self._places[key]

    cdef Py_ssize_t _read(self, Bytes abbrev, const Unit *unit) except -1:
        """Add a unit's table: how many rows it has."""
        cdef Py_ssize_t first = self._rows.count
        cdef Step[MAX_ATTRIBUTES] steps
        cdef Abbreviation row
        cdef int64_t position = unit.abbrev, i
        # Tables don't overlap, unless they are made to be read over and over.
        while self._rows.count <= abbrev.size:
            position = _read_abbreviation(abbrev, position, encoding_of(unit), &row, steps)
            if position < 0:
                break
            row.first_step = self._steps.count
            for i in range(row.steps):
                (<Step *>add(&self._steps))[0] = steps[i]
            (<Abbreviation *>add(&self._rows))[0] = row
        if self._rows.count > first:
            qsort(
                <Abbreviation *>self._rows.data + first, self._rows.count - first,
                sizeof(Abbreviation), _by_code,
            )
        return self._rows.count - first


cdef int64_t _find_root(const Parts *parts, Unit *unit, int64_t budget) noexcept nogil:
    """Set where the root DIE's values are and are declared, if it has any: bytes read for that."""
    cdef Cursor c = cursor(parts.info, unit.die, unit.end)
    cdef uint64_t code = uleb(&c)
    cdef Step[MAX_ATTRIBUTES] steps
    cdef Abbreviation row
    cdef int64_t position = unit.abbrev, behind
    unit.root_values = unit.root_specs = -1
    while position - unit.abbrev <= budget:
        behind = _read_abbreviation(parts.abbrev, position, encoding_of(unit), &row, steps)
        if behind < 0:
            break
        position = behind
        if row.code == code:
            unit.root_values, unit.root_specs = c.at, row.specs
            break
    return position - unit.abbrev


cdef bint _read_root(const Parts *parts, const Unit *unit, Value *values) noexcept nogil:
    """Attributes of the root DIE into ROOT_SLOTS slots: whether they could be read."""
    cdef Cursor c = cursor(parts.info, unit.root_values, unit.end)
    read_attributes(parts.abbrev, unit.root_specs, encoding_of(unit), &c, values, ROOT_SLOTS)
    return c.at >= 0


cdef inline int64_t _base(const Value *values, int64_t slot, int64_t default) noexcept nogil:
    """A section offset that a root DIE gives, or the default."""
    return _offset(values[slot].number) if values[slot].form != 0 else default


cdef void _set_bases(
    const Parts *parts, Unit *unit, const Value *values, const int64_t *contribution
) noexcept nogil:
    """What a root DIE says of its unit (LLVM: DWARFUnit::tryExtractDIEsIfNeeded)."""
    cdef int64_t header = 8 if unit.offset_size == 4 else 16
    cdef int64_t strings = header if unit.version >= 5 else 0
    cdef Found low
    if values[GNU_DWO_ID].form != 0:
        unit.dwo_id, unit.has_dwo_id = values[GNU_DWO_ID].number, True
    unit.lines = _base(values, STMT_LIST, -1)
    unit.str_offsets_base = _base(values, STR_OFFSETS_BASE, strings) + contribution[STR_OFFSETS]
    unit.addr_base = _base(values, ADDR_BASE, _base(values, GNU_ADDR_BASE, -1))
    unit.rnglists_base = _base(values, RNGLISTS_BASE, header + 4) + contribution[RNGLISTS]
    low = address_of(
        parts.addr, values[LOW_PC if values[LOW_PC].form != 0 else ENTRY_PC], unit.addr_base,
        unit.address_size,
    )
    unit.has_low_pc, unit.low_pc = low.is_there, low.number
    unit.name = text_of(parts, unit, values[NAME], IN_INFO)
    unit.comp_dir = text_of(parts, unit, values[COMP_DIR], IN_INFO)
    unit.dwo_name = text_of(
        parts, unit, values[DWO_NAME if unit.version >= 5 else GNU_DWO_NAME], IN_INFO
    )
    unit.gnu_ranges_base = _base(values, GNU_RANGES_BASE, 0)


# Columns of a package's index.
cdef enum:
    INFO
    ABBREV
    STR_OFFSETS
    RNGLISTS


cdef const int64_t *_contribution(
    const int64_t[:, ::1] package, int64_t offset, const int64_t *none
) except? NULL nogil:
    """The row of a package's index for the unit at an offset, which is sorted by those."""
    cdef Py_ssize_t low = 0, high = package.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if package[middle, INFO] < offset:
            low = middle + 1
        else:
            high = middle
    if low < package.shape[0] and package[low, INFO] == offset:
        return &package[low, 0]
    return none


cdef enum:
    LONGEST_HEADER = 40


cdef struct Reading:
    # Where reading units is, and where the part of .debug_info that is in memory must end for the
    # next one; 0 if there is none.
    int64_t position
    int64_t needed
    int64_t budget  # bytes of .debug_abbrev to look at


cdef bint _read_unit(
    const Parts *parts, const int64_t *contribution, Reading *reading, Unit *unit, Value *values
) noexcept nogil:
    """Fill in the next unit and the values of its root DIE; False if there is none in memory."""
    cdef Bytes info = parts.info
    cdef int64_t behind = _read_header(info, reading.position, unit)
    if behind <= reading.position:  # damaged, or not in memory as a whole
        reading.needed = reading.position + LONGEST_HEADER
        reading.needed = reading.needed if info.end < min(reading.needed, info.size) else 0
        return False
    unit.abbrev += contribution[ABBREV]
    reading.budget -= _find_root(parts, unit, reading.budget)
    if not _read_root(parts, unit, values) and info.end < unit.end:
        reading.needed = unit.end
        return False
    _set_bases(parts, unit, values, contribution)
    reading.position = reading.needed = behind
    return True


def read_units(
    Sections sections, const int64_t[:, ::1] package, int64_t position, Py_ssize_t before,
    int64_t budget, Py_ssize_t limit,
):
    cdef const Parts *parts = &sections.parts
    cdef Reading reading = Reading(position, position, budget)
    cdef Growing rows = growing(sizeof(Unit))
    cdef Ranges ranges
    cdef int64_t[RNGLISTS + 1] none = [0, 0, 0, 0]
    cdef Value[ROOT_SLOTS] values
    cdef Unit unit
    memset(&unit, 0, sizeof(Unit))
    unit.first_abbreviation = -1
    ranges.rows, ranges.limit = growing(sizeof(Range)), limit
    try:
        with nogil:
            while _read_unit(
                parts, _contribution(package, reading.position, none), &reading, &unit, values
            ):
                if not unit.is_type and ranges.rows.count <= limit:
                    put_ranges(parts, &unit, values, before + rows.count, &ranges)
                (<Unit *>add(&rows))[0] = unit
        units = np.frombuffer(content(&rows), UNIT)
        found = np.frombuffer(content(&ranges.rows), RANGE)
        return units, found, reading.position, reading.needed, reading.budget
    finally:
        release(&rows)
        release(&ranges.rows)


cdef struct RangeSet:
    # One set of .debug_aranges: pairs of addresses and lengths of the unit at `offset`.
    int64_t offset
    int64_t address_size
    int64_t first
    int64_t pairs
    int64_t behind


cdef bint _read_set(Bytes data, int64_t position, RangeSet *found) noexcept nogil:
    """Fill in the set at a position; False if it is damaged or of a form that LLVM refuses."""
    cdef Cursor c = cursor(data, position, data.end)
    cdef Length length = length_within(&c, data.size)
    cdef int64_t pair, segment_size
    if length.value < 0 or length.value > data.size - c.at:
        return False
    found.behind = c.end = c.at + length.value
    fixed(&c, 2)
    found.offset = _offset(fixed(&c, length.offset_size))
    found.address_size = <int64_t>fixed(&c, 1)
    segment_size = <int64_t>fixed(&c, 1)
    if c.at < 0 or found.address_size not in (4, 8) or segment_size != 0:
        return False
    pair = 2 * found.address_size
    found.first = position + (c.at - position + pair - 1) // pair * pair
    found.pairs = (found.behind - found.first) // pair - 1
    if found.pairs < 0 or (found.behind - position) % pair != 0:
        return False
    c = cursor(data, found.behind - pair, found.behind)
    return fixed(&c, found.address_size) == 0 and fixed(&c, found.address_size) == 0


cdef int _put_set(Bytes data, const RangeSet *found, Growing *rows) except -1 nogil:
    cdef Cursor c = cursor(data, found.first, found.behind)
    cdef Range *row
    for _ in range(found.pairs):
        row = <Range *>add(rows)
        row.low = fixed(&c, found.address_size)
        row.high = row.low + fixed(&c, found.address_size)
        row.owner = found.offset
    return 0


def read_aranges(const uint8_t[::1] section):
    cdef Bytes data = bytes_of(section)
    cdef Growing rows = growing(sizeof(Range)), listed = growing(sizeof(int64_t))
    cdef int64_t position = 0
    cdef RangeSet found
    try:
        with nogil:
            while position < data.size and _read_set(data, position, &found):
                (<int64_t *>add(&listed))[0] = found.offset
                _put_set(data, &found, &rows)
                position = found.behind
        return np.frombuffer(content(&listed), np.int64), np.frombuffer(content(&rows), RANGE)
    finally:
        release(&rows)
        release(&listed)


cdef struct Heap:
    # Units that were active, the first of them on top; as many at most as there are claims.
    int64_t *units
    Py_ssize_t size


cdef inline void _push(Heap *heap, int64_t unit) noexcept nogil:
    cdef Py_ssize_t at = heap.size
    heap.size += 1
    while at > 0 and heap.units[(at - 1) // 2] > unit:
        heap.units[at] = heap.units[(at - 1) // 2]
        at = (at - 1) // 2
    heap.units[at] = unit


cdef inline void _pop(Heap *heap) noexcept nogil:
    cdef Py_ssize_t at = 0, below = 1
    cdef int64_t unit = heap.units[heap.size - 1]
    heap.size -= 1
    while below < heap.size:
        if below + 1 < heap.size and heap.units[below + 1] < heap.units[below]:
            below += 1
        if heap.units[below] >= unit:
            break
        heap.units[at] = heap.units[below]
        at, below = below, 2 * below + 1
    heap.units[at] = unit


cdef inline int _extend(
    Growing *stretches, const int64_t[::1] active, uint64_t low, uint64_t high, int64_t first
) except -1 nogil:
    """Give a stretch to the unit before it if that one claims it too, else to the first."""
    cdef Range *last = NULL
    if stretches.count > 0:
        last = <Range *>stretches.data + stretches.count - 1
    if last is NULL or last.high != low or active[last.owner] == 0:
        last = <Range *>add(stretches)
        last.low, last.owner = low, first
    last.high = high
    return 0


def resolve(
    const uint64_t[::1] starts, const uint64_t[::1] ends, const int64_t[::1] units,
    const int64_t[::1] order,
):
    cdef Py_ssize_t n = units.shape[0], i, k
    cdef int64_t[::1] active = np.zeros(np.max(units, initial=-1) + 1, np.int64)
    cdef int64_t[::1] room = np.empty(n + 1, np.int64)
    cdef Heap heap = Heap(&room[0], 0)
    cdef Growing stretches = growing(sizeof(Range))
    cdef uint64_t address, before = 0
    try:
        with nogil:
            for k in range(order.shape[0]):
                i = order[k] % n
                address = starts[i] if order[k] < n else ends[i]
                while heap.size > 0 and active[heap.units[0]] == 0:
                    _pop(&heap)
                if heap.size > 0 and before < address:
                    _extend(&stretches, active, before, address, heap.units[0])
                before = address
                if order[k] < n:
                    active[units[i]] += 1
                    _push(&heap, units[i])
                else:
                    active[units[i]] -= 1
        return np.frombuffer(content(&stretches), RANGE)
    finally:
        release(&stretches)
