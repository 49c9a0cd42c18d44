"""Line programs: header, file tables, run, and look-up of addresses.

Source: DWARF 5, 6.2; LLVM: DWARFDebugLine.cpp for what damage costs, for the tombstones of dropped
code and for which row answers where several could.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from lbr2pgo.program.elf._bytes cimport (
    Bytes,
    Cursor,
    Length,
    bytes_of,
    cursor,
    fixed,
    has,
    length_within,
    skip,
    skip_leb,
    skip_string,
    sleb,
    uleb,
)
from lbr2pgo.program.dwarf._entries cimport IN_LINE, Parts, Unit, text_of, text_place
from lbr2pgo.program.dwarf._forms cimport DW_FORM_data16, Encoding, Value, read_form
from lbr2pgo.program.dwarf._units cimport Sections
from lbr2pgo.native.growing cimport Growing, add, content, growing, release

cdef enum:
    DW_LNS_copy = 1
    DW_LNS_advance_pc
    DW_LNS_advance_line
    DW_LNS_set_file
    DW_LNS_set_column
    DW_LNS_negate_stmt
    DW_LNS_set_basic_block
    DW_LNS_const_add_pc
    DW_LNS_fixed_advance_pc
    DW_LNS_set_prologue_end
    DW_LNS_set_epilogue_begin
    DW_LNS_set_isa

cdef enum:
    DW_LNE_end_sequence = 1
    DW_LNE_set_address
    DW_LNE_define_file
    DW_LNE_set_discriminator

cdef enum:
    DW_LNCT_path = 1
    DW_LNCT_directory_index
    DW_LNCT_MD5 = 5


cdef enum:
    NO_FILE = 0xFFFFFFFFULL  # 0 is a file in DWARF 5


cdef struct Row:
    # One row of the matrix.
    uint64_t address
    uint32_t line
    uint32_t discriminator
    uint32_t file
    uint32_t column


cdef struct Sequence:
    # Addresses low to high (exclusive), rows first to last; the last one only ends it. First and last
    # are the same where the rows were left out.
    uint64_t low
    uint64_t high
    int64_t first
    int64_t last


cdef struct Name:
    # A directory or a file.
    int64_t place
    int64_t directory
    uint64_t digest_low  # the MD5 of a file, as it stands there; 0 and 0 if it is not said
    uint64_t digest_high


cdef Row _row
cdef Sequence _sequence
cdef Name _name
cdef Found _found
ROW = np.asarray(<Row[:1]>&_row).dtype
SEQUENCE = np.asarray(<Sequence[:1]>&_sequence).dtype
NAME = np.asarray(<Name[:1]>&_name).dtype
FOUND = np.asarray(<Found[:1]>&_found).dtype


cdef struct Header:
    Encoding encoding
    int64_t tables  # where directories and files are listed
    int64_t program  # the first opcode
    int64_t end
    uint64_t min_instruction
    uint64_t max_operations
    int64_t line_base
    int64_t line_range
    int64_t opcode_base
    int64_t lengths  # where the operand counts of the standard opcodes stand


cdef Cursor _read_lengths(Bytes data, int64_t offset, Header *header) noexcept nogil:
    """Fill in version, sizes and bounds of a table; the cursor behind them."""
    cdef Cursor c = cursor(data, offset, data.end)
    cdef Length length = length_within(&c, data.size)
    cdef uint64_t prologue
    if length.value >= 0 and has(&c, length.value):
        c.end = c.at + length.value
    header.end = c.end
    header.encoding.offset_size = length.offset_size
    header.encoding.version = <int64_t>fixed(&c, 2)
    if header.encoding.version == 5:
        header.encoding.address_size = <int64_t>fixed(&c, 1)
        skip(&c, 1)
    prologue = fixed(&c, length.offset_size)
    if has(&c, prologue):
        c.end = c.at + <int64_t>prologue
    else:
        c.at = -1
    header.program = c.end
    return c


cdef bint _read_header(
    Bytes data, int64_t offset, int64_t address_size, Header *header
) noexcept nogil:
    """Fill in the table's header at an offset; False if there is no such table.

    `address_size` is the unit's, which tables before DWARF 5 don't state.
    """
    cdef Cursor c
    header.encoding.address_size = address_size
    c = _read_lengths(data, offset, header)
    if c.at < 0 or not 2 <= header.encoding.version <= 5:
        return False
    header.min_instruction = fixed(&c, 1)
    header.max_operations = fixed(&c, 1) if header.encoding.version >= 4 else 1
    skip(&c, 1)
    header.line_base = <int64_t>fixed(&c, 1)
    if header.line_base > 127:
        header.line_base -= 256
    header.line_range = <int64_t>fixed(&c, 1)
    header.opcode_base = <int64_t>fixed(&c, 1)
    header.lengths = c.at
    skip(&c, max(header.opcode_base - 1, 0))
    header.tables = c.at
    return c.at >= 0


def table_length(const uint8_t[::1] start, int64_t most):
    cdef Cursor c = cursor(bytes_of(start), 0, start.shape[0])
    cdef Length length = length_within(&c, most)
    return min(c.at + length.value, most) if length.value >= 0 else most


cdef struct Formats:
    # What an entry of a table of DWARF 5 consists of.
    uint64_t[256] content
    uint64_t[256] form
    int64_t count


cdef void _read_formats(Cursor *c, Formats *formats) noexcept nogil:
    cdef int64_t i
    formats.count = <int64_t>fixed(c, 1)
    for i in range(formats.count):
        formats.content[i], formats.form[i] = uleb(c), uleb(c)


cdef Name _read_entry(
    const Parts *parts, const Unit *unit, Cursor *c, const Formats *formats, Encoding encoding
) noexcept nogil:
    cdef Name name = Name(-1, 0, 0, 0)
    cdef Value value
    cdef int64_t i
    for i in range(formats.count):
        value = read_form(c, formats.form[i], encoding)
        if formats.content[i] == DW_LNCT_path and c.at >= 0:
            name.place = text_of(parts, unit, value, IN_LINE)
        elif formats.content[i] == DW_LNCT_directory_index:
            name.directory = _index(value.number)
        elif formats.content[i] == DW_LNCT_MD5 and value.form == DW_FORM_data16 and c.at >= 0:
            # read_form found these 16 bytes within the section, and says where they are.
            memcpy(&name.digest_low, c.data + value.number, 8)
            memcpy(&name.digest_high, c.data + value.number + 8, 8)
    return name


cdef inline int64_t _index(uint64_t number) noexcept nogil:
    """An index of a table; one that no table has is the largest."""
    return <int64_t>number if number < 0xFFFFFFFFULL else 0xFFFFFFFFULL


cdef int _read_table(
    const Parts *parts, const Unit *unit, Cursor *c, Encoding encoding, Growing *names
) except -1 nogil:
    """Read a table of DWARF 5, up to what is damaged."""
    cdef Formats formats
    cdef uint64_t count
    cdef int64_t before
    cdef Name name
    _read_formats(c, &formats)
    count = uleb(c)
    while count > 0 and c.at >= 0:
        before = c.at
        name = _read_entry(parts, unit, c, &formats, encoding)
        if c.at <= before:  # an entry without bytes could be repeated 2**64 times
            c.at = -1
            break
        (<Name *>add(names))[0] = name
        count -= 1
    return 0


cdef Name _read_classic_file(Cursor *c) noexcept nogil:
    """A file of versions 2 to 4: its name, directory, time and length."""
    cdef Name name = Name(text_place(IN_LINE, c.at), 0, 0, 0)
    skip_string(c)
    name.directory = _index(uleb(c))
    skip_leb(c)
    skip_leb(c)
    return name


cdef int _read_classic_tables(Cursor *c, Growing *directories, Growing *files) except -1 nogil:
    """Read the tables of versions 2 to 4, each of which ends with a zero."""
    cdef Name name
    while has(c, 1) and c.data[c.at] != 0:
        name = Name(text_place(IN_LINE, c.at), 0, 0, 0)
        skip_string(c)
        if c.at >= 0:
            (<Name *>add(directories))[0] = name
    skip(c, 1)
    while has(c, 1) and c.data[c.at] != 0:
        name = _read_classic_file(c)
        if c.at >= 0:
            (<Name *>add(files))[0] = name
    return 0


cdef int _read_tables(
    const Parts *parts, const Unit *unit, const Header *header, Growing *directories,
    Growing *files,
) except -1 nogil:
    """Read directories and files, up to what is damaged."""
    cdef Cursor c = cursor(parts.line, header.tables, header.program)
    if header.encoding.version < 5:
        return _read_classic_tables(&c, directories, files)
    _read_table(parts, unit, &c, header.encoding, directories)
    return _read_table(parts, unit, &c, header.encoding, files)


cdef struct Machine:
    # The registers of the line machine, and what it made.
    Row row
    uint64_t index  # op_index, for instruction words of several operations
    bint is_dropped  # the last address set was a tombstone: rows are not kept
    bint is_complete
    int64_t first  # row of the sequence that is running
    Growing rows
    Growing sequences
    Growing files
    # What special opcodes add to operations and lines.
    uint64_t[256] operations
    uint32_t[256] lines
    # Only sequences with some of these addresses, sorted, are kept with their rows.
    const uint64_t *wanted
    int64_t count  # of the addresses; negative if all sequences are wanted


cdef inline void _reset(Machine *machine) noexcept nogil:
    """The registers at the start of a sequence."""
    memset(&machine.row, 0, sizeof(Row))
    machine.row.line = machine.row.file = 1
    machine.index = 0


cdef inline void _advance(const Header *header, Machine *machine, uint64_t operation) noexcept nogil:
    """Move the address by an operation advance."""
    cdef uint64_t total
    if header.max_operations <= 1:
        machine.row.address += operation * header.min_instruction
        return
    total = machine.index + operation
    machine.row.address += total // header.max_operations * header.min_instruction
    machine.index = total % header.max_operations


cdef void _prepare(const Header *header, Machine *machine) noexcept nogil:
    """Work out the special opcodes, most of a program: divisions would be half of a run."""
    cdef int64_t opcode, adjusted
    for opcode in range(256):
        adjusted = (opcode - header.opcode_base) & 0xFF
        machine.operations[opcode] = machine.lines[opcode] = 0
        if header.line_range != 0:
            machine.operations[opcode] = adjusted // header.line_range
            machine.lines[opcode] = <uint32_t>(header.line_base + adjusted % header.line_range)


cdef inline int _emit(Machine *machine) except -1 nogil:
    """Make a row of the registers."""
    if not machine.is_dropped:
        (<Row *>add(&machine.rows))[0] = machine.row
    machine.row.discriminator = 0
    return 0


cdef inline bint _holds_wanted(const Machine *machine, uint64_t low, uint64_t high) noexcept nogil:
    """Whether some of the wanted addresses are in a range."""
    cdef int64_t first = 0, past = machine.count, middle
    while first < past:
        middle = (first + past) // 2
        if machine.wanted[middle] < low:
            first = middle + 1
        else:
            past = middle
    return first < machine.count and machine.wanted[first] < high


cdef int _end_sequence(Machine *machine) except -1 nogil:
    """Keep the rows since the last sequence as one, if they are one."""
    cdef const Row *rows
    cdef Sequence *sequence
    cdef int64_t last
    cdef bint is_wanted = machine.count < 0
    _emit(machine)
    rows, last = <const Row *>machine.rows.data, machine.rows.count - 1
    if last > machine.first and rows[machine.first].address < rows[last].address:
        # One without wanted addresses may still be the one that ends first above an address.
        sequence = <Sequence *>add(&machine.sequences)
        sequence.low, sequence.high = rows[machine.first].address, rows[last].address
        sequence.first, sequence.last = machine.first, last
        is_wanted = is_wanted or _holds_wanted(machine, sequence.low, sequence.high)
        if not is_wanted:
            sequence.last = sequence.first
    if not is_wanted:
        machine.rows.count = machine.first
    machine.first = machine.rows.count
    _reset(machine)
    return 0


cdef inline void _set_address(Cursor *c, Machine *machine, int64_t size) noexcept nogil:
    """Run DW_LNE_set_address; an operand of odd size is passed over."""
    cdef uint64_t address, highest
    if size in (1, 2, 4, 8) and has(c, size):
        address = fixed(c, size)
        highest = ~<uint64_t>0 >> (64 - 8 * size)
        machine.row.address, machine.index = address, 0
        machine.is_dropped = address == highest


cdef inline int _extended(Cursor *c, Machine *machine) except -1 nogil:
    """Run an extended opcode, whose length comes first."""
    cdef uint64_t length = uleb(c), opcode
    cdef int64_t behind
    if not has(c, length):
        c.at = -1
        return 0
    behind = c.at + <int64_t>length
    opcode = fixed(c, 1) if length > 0 else 0
    if opcode == DW_LNE_end_sequence:
        _end_sequence(machine)
    elif opcode == DW_LNE_set_address:
        _set_address(c, machine, behind - c.at)
    elif opcode == DW_LNE_define_file:
        (<Name *>add(&machine.files))[0] = _read_classic_file(c)
    elif opcode == DW_LNE_set_discriminator:
        machine.row.discriminator = <uint32_t>uleb(c)
    c.at = behind
    return 0


cdef inline void _skip_operands(Cursor *c, const Header *header, int64_t opcode) noexcept nogil:
    """Pass over the operands of an opcode that is not known, which the header counts."""
    cdef int64_t i
    for i in range(c.data[header.lengths + opcode - 1]):
        skip_leb(c)


cdef inline int _standard(
    Cursor *c, const Header *header, Machine *machine, int64_t opcode
) except -1 nogil:
    """Run a standard opcode.

    The header's word counts for operands of unknown ones only (LLVM: DWARFDebugLine.cpp parse).
    """
    if opcode == DW_LNS_copy:
        _emit(machine)
    elif opcode == DW_LNS_advance_pc:
        _advance(header, machine, uleb(c))
    elif opcode == DW_LNS_advance_line:
        machine.row.line += <uint32_t>sleb(c)
    elif opcode == DW_LNS_set_file:
        machine.row.file = <uint32_t>uleb(c) & 0xFFFF
    elif opcode == DW_LNS_set_column:
        machine.row.column = <uint32_t>uleb(c)
    elif opcode == DW_LNS_set_isa:
        skip_leb(c)
    elif opcode == DW_LNS_const_add_pc:
        _advance(header, machine, machine.operations[255])
    elif opcode == DW_LNS_fixed_advance_pc:
        machine.row.address += fixed(c, 2)
        machine.index = 0
    elif opcode not in (
        DW_LNS_negate_stmt, DW_LNS_set_basic_block, DW_LNS_set_prologue_end,
        DW_LNS_set_epilogue_begin,
    ):
        _skip_operands(c, header, opcode)
    return 0


cdef int _run(Bytes data, const Header *header, Machine *machine) except -1 nogil:
    """Run the program; every opcode takes a byte at least, so the run ends."""
    cdef Cursor c = cursor(data, header.program, header.end)
    cdef int64_t opcode
    _prepare(header, machine)
    _reset(machine)
    while has(&c, 1):
        opcode = <int64_t>fixed(&c, 1)
        if opcode == 0:
            _extended(&c, machine)
        elif opcode >= header.opcode_base:
            _advance(header, machine, machine.operations[opcode])
            machine.row.line += machine.lines[opcode]
            _emit(machine)
        else:
            _standard(&c, header, machine, opcode)
    machine.is_complete = c.at >= 0 and machine.rows.count == machine.first
    return 0


def run_program(
    Sections sections, const Unit[::1] units, Py_ssize_t index, const uint64_t[::1] wanted
):
    cdef const Parts *parts = &sections.parts
    cdef const Unit *unit = &units[index]
    cdef Header header
    cdef Machine machine
    cdef Growing directories = growing(sizeof(Name))
    if not _read_header(parts.line, unit.lines, unit.address_size, &header):
        return None
    memset(&machine, 0, sizeof(Machine))
    machine.rows, machine.sequences = growing(sizeof(Row)), growing(sizeof(Sequence))
    machine.files, machine.count = growing(sizeof(Name)), -1
    if wanted is not None:
        machine.count = wanted.shape[0]
        machine.wanted = &wanted[0] if machine.count else NULL
    try:
        with nogil:
            _read_tables(parts, unit, &header, &directories, &machine.files)
            _run(parts.line, &header, &machine)
        return (
            header.encoding.version,
            np.frombuffer(content(&machine.rows), ROW),
            np.frombuffer(content(&machine.sequences), SEQUENCE),
            np.frombuffer(content(&directories), NAME),
            np.frombuffer(content(&machine.files), NAME),
            bool(machine.is_complete),
        )
    finally:
        release(&machine.rows)
        release(&machine.sequences)
        release(&machine.files)
        release(&directories)


cdef inline Py_ssize_t _first_ending_above(
    const Sequence[::1] sequences, uint64_t address
) except -1 nogil:
    """Index of the first sequence, in order of their ends, that ends above an address."""
    cdef Py_ssize_t low = 0, high = sequences.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if sequences[middle].high > address:
            high = middle
        else:
            low = middle + 1
    return low


cdef inline int64_t _last_at_or_below(
    const Row[::1] rows, int64_t first, int64_t last, uint64_t address
) except -1 nogil:
    """The last of the rows `first` to `last` (exclusive) that is not above an address."""
    cdef int64_t middle
    while first + 1 < last:
        middle = (first + last) // 2
        if rows[middle].address > address:
            last = middle
        else:
            first = middle
    return first


def look_up(
    const uint64_t[::1] addresses, const Row[::1] rows, const Sequence[::1] sequences,
    uint32_t first_file, uint32_t past_file,
):
    found = np.zeros(addresses.shape[0], FOUND)
    cdef Found[::1] out = found
    cdef Py_ssize_t i, k
    cdef int64_t at
    with nogil:
        for i in range(addresses.shape[0]):
            out[i].file = NO_FILE
            k = _first_ending_above(sequences, addresses[i])
            if k == sequences.shape[0] or sequences[k].low > addresses[i]:
                continue
            at = _last_at_or_below(rows, sequences[k].first, sequences[k].last, addresses[i])
            if first_file <= rows[at].file < past_file:
                out[i].is_there, out[i].file = 1, rows[at].file
                out[i].line, out[i].discriminator = rows[at].line, rows[at].discriminator
                out[i].column = rows[at].column
    return found
