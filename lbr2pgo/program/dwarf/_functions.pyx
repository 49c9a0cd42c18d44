"""Functions and inlined calls: their DIEs, the addresses around which they are, and their names.

Source: DWARF 5, 3.3; LLVM: DWARFUnit.cpp updateAddressDieMap, DWARFDie.cpp findRecursively.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from lbr2pgo.program.elf._bytes cimport Cursor, cursor, uleb
from lbr2pgo.program.dwarf._entries cimport (
    CALL_FILE,
    CALL_LINE,
    DECL_LINE,
    DISCRIMINATOR,
    FUNCTION_SLOTS,
    IN_INFO,
    LINKAGE_NAME,
    MIPS_LINKAGE_NAME,
    NAME,
    ORIGIN,
    SPECIFICATION,
    Abbreviation,
    DW_TAG_inlined_subroutine,
    DW_TAG_subprogram,
    Parts,
    Range,
    RANGE_SLOTS,
    Ranges,
    Unit,
    encoding_of,
    find_abbreviation,
    put_ranges,
    read_attributes,
    read_ranges,
    skip_values,
    text_of,
)
from lbr2pgo.program.dwarf._forms cimport Value, is_constant
from lbr2pgo.program.dwarf._units cimport TOO_MANY_RANGES, Abbreviations, Sections
from lbr2pgo.program.dwarf._walk cimport (
    Walk,
    abbreviations_of,
    ending_of,
    is_over,
    moved_to,
    next_entry,
    next_in_tree,
    reference,
    walk_over,
)
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

from lbr2pgo.program.dwarf._units import RANGE

cdef Die _die
cdef Description _description = Description(-1, -1, -1, -1, 0, 0, 0, 0)
DIE = np.asarray(<Die[:1]>&_die).dtype
UNDESCRIBED = np.asarray(<Description[:1]>&_description)[0].copy()
DESCRIPTION = UNDESCRIBED.dtype


def subprogram_ranges(
    Sections sections, const Unit[::1] units, Py_ssize_t index, Abbreviations abbreviations,
    Py_ssize_t limit,
):
    cdef Walk walk = walk_over(sections, &units[index], abbreviations)
    cdef Ranges ranges
    ranges.rows, ranges.limit = growing(sizeof(Range)), limit
    try:
        with nogil:
            _walk_subprograms(&walk, &ranges)
        ending = ending_of(&walk) if ranges.rows.count <= limit else TOO_MANY_RANGES
        return np.frombuffer(content(&ranges.rows), RANGE), ending
    finally:
        release(&ranges.rows)


cdef int _walk_subprograms(Walk *walk, Ranges *ranges) except -1 nogil:
    cdef const Abbreviation *declared = next_in_tree(walk)
    cdef Value[RANGE_SLOTS] values
    while declared is not NULL and ranges.rows.count <= ranges.limit:
        if declared.tag == DW_TAG_subprogram and declared.has_ranges:
            read_ranges(&walk.c, declared, walk.steps, walk.encoding, values)
            put_ranges(walk.parts, walk.unit, values, walk.at, ranges)
        else:
            skip_values(&walk.c, declared, walk.steps, walk.encoding)
        declared = next_in_tree(walk)
    return 0


cdef struct Scope:
    # What stands around the children of a DIE.
    int32_t function  # row of the nearest function, -1 if there is none
    bint has_code  # a function around has addresses: all in it is kept or dropped with it
    # Of a function that is kept or dropped when it ends: what there was before it.
    bint is_judged
    bint is_wanted
    Py_ssize_t dies
    Py_ssize_t ranges


cdef struct Search:
    # The functions that hold some of the sorted addresses.
    const uint64_t *addresses
    Py_ssize_t count
    # Between these, of which neither is, there are none.
    uint64_t before
    uint64_t behind
    bint is_wanted  # the function that is read holds some
    Growing dies
    Ranges ranges
    Growing scopes
    int64_t seen  # ranges, with those that were dropped


def functions_around(
    Sections sections, const Unit[::1] units, Py_ssize_t index, Abbreviations abbreviations,
    const uint64_t[::1] addresses, Py_ssize_t limit,
):
    cdef Walk walk = walk_over(sections, &units[index], abbreviations)
    cdef Search search
    memset(&search, 0, sizeof(Search))
    search.count = addresses.shape[0]
    search.addresses = &addresses[0] if search.count else NULL
    search.dies, search.scopes = growing(sizeof(Die)), growing(sizeof(Scope))
    search.ranges.rows, search.ranges.limit = growing(sizeof(Range)), limit
    try:
        with nogil:
            _walk_functions(&walk, &search)
        ending = ending_of(&walk) if search.seen <= limit else TOO_MANY_RANGES
        dies = np.frombuffer(content(&search.dies), DIE)
        return dies, np.frombuffer(content(&search.ranges.rows), RANGE), ending
    finally:
        release(&search.dies)
        release(&search.ranges.rows)
        release(&search.scopes)


cdef int _walk_functions(Walk *walk, Search *search) except -1 nogil:
    cdef const Abbreviation *declared
    cdef Scope *outermost = <Scope *>add(&search.scopes)
    memset(outermost, 0, sizeof(Scope))
    outermost.function = -1
    while not is_over(walk) and search.seen <= search.ranges.limit:
        declared = next_entry(walk)
        if declared is not NULL:
            _open(walk, search, declared)
        if declared is NULL or not declared.children:
            _close(search)
        if search.scopes.count <= 1:
            break
    return 0


cdef inline Scope *_scope(Search *search) noexcept nogil:
    """The innermost one; the outermost is never closed."""
    return <Scope *>search.scopes.data + search.scopes.count - 1


cdef inline int _open(Walk *walk, Search *search, const Abbreviation *declared) except -1 nogil:
    """Take the entry whose code was read, and go into it."""
    cdef bint is_function = declared.tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine)
    cdef Value[RANGE_SLOTS] values
    cdef Scope around = _scope(search)[0]
    cdef Scope *scope = <Scope *>add(&search.scopes)
    scope[0] = around
    scope.is_judged = False
    # A function without addresses may be around one that has some; one without children is not.
    if not is_function or not (declared.has_ranges or declared.children):
        skip_values(&walk.c, declared, walk.steps, walk.encoding)
        return 0
    if not around.has_code:
        scope.is_judged, scope.is_wanted = True, search.is_wanted
        scope.dies, scope.ranges = search.dies.count, search.ranges.rows.count
        search.is_wanted = False
    scope.function = search.dies.count
    _put_die(search, walk.at, around.function, declared.tag == DW_TAG_subprogram)
    if declared.has_ranges:
        scope.has_code = True
        read_ranges(&walk.c, declared, walk.steps, walk.encoding, values)
        _put_ranges(walk, search, values, scope.function)
    else:
        skip_values(&walk.c, declared, walk.steps, walk.encoding)
    return 0


cdef inline int _put_die(
    Search *search, int64_t offset, int32_t parent, bint is_subprogram
) except -1 nogil:
    cdef Die *die = <Die *>add(&search.dies)
    die.offset, die.parent, die.is_subprogram = offset, parent, is_subprogram
    return 0


cdef inline int _put_ranges(
    Walk *walk, Search *search, const Value *values, int64_t owner
) except -1 nogil:
    cdef Py_ssize_t i, before = search.ranges.rows.count
    cdef const Range *rows
    put_ranges(walk.parts, walk.unit, values, owner, &search.ranges)
    search.seen += search.ranges.rows.count - before
    rows = <const Range *>search.ranges.rows.data
    for i in range(before, search.ranges.rows.count):
        if search.is_wanted:
            break
        search.is_wanted = _holds_any(search, rows[i].low, rows[i].high)
    return 0


cdef inline bint _holds_any(Search *search, uint64_t low, uint64_t high) noexcept nogil:
    """Whether some of the addresses are in a range."""
    cdef Py_ssize_t first = 0, past = search.count, middle
    if search.before < low and high <= search.behind:  # most ranges are in the one looked up before
        return False
    while first < past:
        middle = (first + past) // 2
        if search.addresses[middle] < low:
            first = middle + 1
        else:
            past = middle
    search.before = search.addresses[first - 1] if first > 0 else 0
    search.behind = search.addresses[first] if first < search.count else ~<uint64_t>0
    return first < search.count and search.addresses[first] < high


cdef inline void _close(Search *search) noexcept nogil:
    """Leave the innermost scope; what it holds of no interest is forgotten."""
    cdef Scope *scope = _scope(search)
    search.scopes.count -= 1
    if scope.is_judged:
        if not search.is_wanted:
            search.dies.count, search.ranges.rows.count = scope.dies, scope.ranges
        search.is_wanted = search.is_wanted or scope.is_wanted


# The map from addresses to functions is LLVM's, insertion by insertion: where ranges nest, the
# innermost wins; where they overlap otherwise (folded code, damage), the outcome depends on the
# order, so the order is kept. Starts are only ever added, so a Fenwick tree of maxima finds the one
# below.


cdef inline Py_ssize_t _rank(const uint64_t[::1] bounds, uint64_t bound) except -1 nogil:
    """How many bounds are below one."""
    cdef Py_ssize_t first = 0, past = bounds.shape[0], middle
    while first < past:
        middle = (first + past) // 2
        if bounds[middle] < bound:
            first = middle + 1
        else:
            past = middle
    return first


cdef inline int _set_latest(int64_t[::1] tree, Py_ssize_t start) except -1 nogil:
    """Make a start known to `_latest`."""
    cdef Py_ssize_t i = start + 1
    while i < tree.shape[0]:
        tree[i] = max(tree[i], start + 1)
        i += i & -i
    return 0


cdef inline Py_ssize_t _latest(const int64_t[::1] tree, Py_ssize_t start) except -2 nogil:
    """The greatest known start that is not above one, -1 if there is none."""
    cdef int64_t best = 0
    cdef Py_ssize_t i = start + 1
    while i > 0:
        best = max(best, tree[i])
        i -= i & -i
    return best - 1


cdef int _insert(
    Py_ssize_t low, Py_ssize_t high, int64_t owner, int64_t[::1] ends, int64_t[::1] owners,
    int64_t[::1] tree,
) except -1 nogil:
    cdef Py_ssize_t below = _latest(tree, low)
    if below >= 0 and low < ends[below]:
        if high < ends[below]:
            ends[high], owners[high] = ends[below], owners[below]
            _set_latest(tree, high)
        ends[below] = low
    ends[low], owners[low] = high, owner
    _set_latest(tree, low)
    return 0


def innermost(
    const Range[::1] ranges, const uint64_t[::1] bounds, const uint64_t[::1] addresses
):
    cdef Py_ssize_t n = bounds.shape[0], i, low, high, at = -1, known = -1
    cdef int64_t[::1] ends = np.zeros(n, np.int64), owners = np.full(n, -1, np.int64)
    cdef int64_t[::1] tree = np.zeros(n + 1, np.int64)
    found = np.full(addresses.shape[0], -1, np.int64)
    cdef int64_t[::1] out = found
    with nogil:
        for i in range(ranges.shape[0]):
            low, high = _rank(bounds, ranges[i].low), _rank(bounds, ranges[i].high)
            if low != high:
                _insert(low, high, ranges[i].owner, ends, owners, tree)
        for i in range(addresses.shape[0]):
            while at + 1 < n and bounds[at + 1] <= addresses[i]:
                at += 1
                known = at if owners[at] >= 0 else known
            if known >= 0 and addresses[i] < bounds[ends[known]]:
                out[i] = owners[known]
    return found


cdef enum:
    # DIEs that are followed from one to the next at most: compilers need three.
    LONGEST_WAY = 64


cdef struct Way:
    # The DIEs that one refers to, directly or not.
    int64_t[LONGEST_WAY] seen
    Py_ssize_t known
    Py_ssize_t[LONGEST_WAY] pending
    Py_ssize_t left


cdef inline void _go_to(Way *way, int64_t offset) noexcept nogil:
    """Visit a DIE later, if it was not seen."""
    cdef Py_ssize_t i
    if offset < 0 or way.known == LONGEST_WAY:
        return
    for i in range(way.known):
        if way.seen[i] == offset:
            return
    way.seen[way.known] = offset
    way.pending[way.left] = way.known
    way.known += 1
    way.left += 1


cdef inline uint32_t _constant(Value value) noexcept nogil:
    """An attribute cut to 32 bits; 0 if it is no unsigned constant."""
    return <uint32_t>value.number if is_constant(value.form) else 0


cdef bint _read_die(
    const Parts *parts, const Unit *unit, const Abbreviation *table, int64_t offset, Value *values
) noexcept nogil:
    """Attributes of the DIE at an offset; False if there is no such DIE."""
    cdef Cursor c = cursor(parts.info, offset, unit.end)
    cdef uint64_t code = uleb(&c)
    cdef const Abbreviation *declared = find_abbreviation(table, unit.abbreviations, code)
    if offset < unit.die or c.at < 0 or declared is NULL:
        return False
    read_attributes(parts.abbrev, declared.specs, encoding_of(unit), &c, values, FUNCTION_SLOTS)
    return True


cdef inline void _take_texts(
    const Parts *parts, const Unit *unit, const Value *values, Description *row
) noexcept nogil:
    """Names of a DIE, where none nearer had any."""
    if row.linkage_name < 0:
        row.linkage_name = text_of(parts, unit, values[MIPS_LINKAGE_NAME], IN_INFO)
    if row.linkage_name < 0:
        row.linkage_name = text_of(parts, unit, values[LINKAGE_NAME], IN_INFO)
    if row.name < 0:
        row.name = text_of(parts, unit, values[NAME], IN_INFO)


cdef inline void _take(
    const Parts *parts, const Unit *unit, const Value *values, bint *has_line, Description *row
) noexcept nogil:
    """Fill in what a DIE says of what no DIE before it did."""
    _take_texts(parts, unit, values, row)
    if not has_line[0] and values[DECL_LINE].form != 0:
        has_line[0], row.decl_line = True, _constant(values[DECL_LINE])
    if row.moved < 0:
        row.moved = moved_to(values[SPECIFICATION])
    if row.moved < 0:
        row.moved = moved_to(values[ORIGIN])


cdef inline void _take_call(const Value *values, Description *row) noexcept nogil:
    """Fill in where a function was inlined, of which only its own DIE speaks."""
    row.call_file = _constant(values[CALL_FILE])
    row.call_line = _constant(values[CALL_LINE])
    row.discriminator = _constant(values[DISCRIMINATOR])


cdef void _describe(
    const Parts *parts, const Unit *unit, const Abbreviation *table, int64_t offset,
    Description *row,
) noexcept nogil:
    """Fill in what a DIE of a unit says."""
    cdef Way way
    cdef Value[FUNCTION_SLOTS] values
    cdef bint is_first, has_line = False
    row[0] = _description
    way.known = way.left = 0
    _go_to(&way, offset)
    while way.left > 0:
        way.left -= 1
        is_first = way.pending[way.left] == 0
        offset = way.seen[way.pending[way.left]]
        if not unit.die <= offset < unit.end:
            row.elsewhere = offset if row.elsewhere < 0 else row.elsewhere
        elif _read_die(parts, unit, table, offset, values):
            _take(parts, unit, values, &has_line, row)
            if is_first:
                _take_call(values, row)
            _go_to(&way, reference(parts, unit, values[ORIGIN]))
            _go_to(&way, reference(parts, unit, values[SPECIFICATION]))  # is visited first
    if row.linkage_name >= 0 and has_line:
        row.elsewhere = -1


def describe(
    Sections sections, const Unit[::1] units, Py_ssize_t index, Abbreviations abbreviations,
    const int64_t[::1] offsets,
):
    cdef const Unit *unit = &units[index]
    cdef const Abbreviation *table = abbreviations_of(unit, abbreviations)
    rows = np.empty(offsets.shape[0], DESCRIPTION)
    cdef Description[::1] out = rows
    cdef Py_ssize_t i
    with nogil:
        for i in range(offsets.shape[0]):
            _describe(&sections.parts, unit, table, offsets[i], &out[i])
    return rows
