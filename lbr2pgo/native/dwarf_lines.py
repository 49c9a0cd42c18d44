"""Line programs: header, run, and look-up of addresses.

Source: DWARF 5, 6.2; LLVM: DWARFDebugLine.cpp for what damage costs, for the tombstones of dropped
code and for which row answers where several could.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.dwarf_bytes import Int, fixed, grown, initial_length, sleb, uleb
from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.native.rows import row_type
from lbr2pgo.support.arrays import Bytes

HEADER = row_type(
    [
        ("version", np.int64),
        ("address_size", np.int64),
        ("offset_size", np.int64),
        ("tables", np.int64),  # where directories and files are listed
        ("program", np.int64),  # first opcode
        ("end", np.int64),
        ("min_instruction", np.uint64),
        ("max_operations", np.uint64),
        ("line_base", np.int64),
        ("line_range", np.int64),
        ("opcode_base", np.int64),
        ("lengths", np.int64),  # where the operand counts of the standard opcodes stand
    ]
)
"""A line program's header; positions in .debug_line."""

ROW = row_type(
    [("address", np.uint64), ("line", np.uint32), ("discriminator", np.uint32), ("file", np.int32)]
)
"""One row of the matrix."""

STATE = row_type(
    [
        *((name, ROW[name]) for name in ROW.names or ()),
        ("index", np.uint64),  # op_index, for instruction words of several operations
        ("dropped", np.bool_),  # the last address set was a tombstone: rows are not kept
        # What the last opcode did.
        ("emits", np.bool_),
        ("ends", np.bool_),
        ("defines", np.int64),
    ]
)
"""The registers of the line machine."""

SEQUENCE = row_type(
    [("low", np.uint64), ("high", np.uint64), ("first", np.int64), ("last", np.int64)]
)
"""Addresses low to high (exclusive), rows first to last; `last` is the end_sequence row."""

# DW_LNS_* and DW_LNE_*
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_NO_OPERAND = (6, 7, 10, 11)  # negate_stmt, set_basic_block, set_prologue_end, epilogue_begin
_ONE_OPERAND = (5, 12)  # set_column, set_isa
_END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE, _SET_DISCRIMINATOR = 1, 2, 3, 4


@compiled_leaf
def _read_lengths(data: Bytes, offset: Int, header: Any) -> Any:
    """Fill version, sizes and bounds of the table at `offset`; the position behind, or -1."""
    size = len(data)
    length, offset_size, at = initial_length(data, offset, size)
    header.offset_size = offset_size
    if at < 0:
        return -1
    header.end = size if length < 0 or at + length > size else at + length
    version, at = fixed(data, at, header.end, 2)
    header.version = np.int64(version)
    if version == 5:
        own_size, at = fixed(data, at, header.end, 1)
        header.address_size = np.int64(own_size)
        _, at = fixed(data, at, header.end, 1)
    prologue, at = fixed(data, at, header.end, offset_size)
    if at < 0 or prologue > np.uint64(header.end - at):
        return -1
    header.program = at + np.int64(prologue)
    return at


@compiled_leaf
def read_header(data: Bytes, offset: Int, address_size: Int, header: Any) -> Any:
    """Fill one row of `HEADER` from the table at `offset`; False if there is no such table.

    `address_size` is the unit's, which tables before DWARF 5 don't state.
    """
    header.address_size = address_size
    at = _read_lengths(data, offset, header)
    if at < 0 or header.version < 2 or header.version > 5:
        return False
    header.min_instruction, at = fixed(data, at, header.program, 1)
    header.max_operations = np.uint64(1)
    if header.version >= 4:
        header.max_operations, at = fixed(data, at, header.program, 1)
    _, at = fixed(data, at, header.program, 1)
    base, at = fixed(data, at, header.program, 1)
    line_range, at = fixed(data, at, header.program, 1)
    opcode_base, at = fixed(data, at, header.program, 1)
    header.line_base = np.int64(base) - 256 * np.int64(base > 127)
    header.line_range, header.opcode_base = np.int64(line_range), np.int64(opcode_base)
    header.lengths = at
    header.tables = at + max(header.opcode_base - 1, 0)
    return at >= 0 and header.tables <= header.program


@compiled_leaf
def _reset(state: Any) -> None:
    """The registers at the start of a sequence."""
    state.address, state.line, state.file, state.discriminator = 0, 1, 1, 0
    state.index = 0


@compiled_leaf
def _advance(header: Any, state: Any, operation: Any) -> None:
    """Move the address by an operation advance."""
    per_instruction = max(header.max_operations, np.uint64(1))
    if per_instruction == 1:  # divisions would be half of a run
        state.address += operation * header.min_instruction
        return
    total = state.index + operation
    state.address += (total // per_instruction) * header.min_instruction
    state.index = total % per_instruction


@compiled_leaf
def _special_advance(header: Any, opcode: Int) -> Any:
    """Operation and line advance of a special opcode."""
    if header.line_range == 0:
        return np.uint64(0), 0
    adjusted = (opcode - header.opcode_base) & 0xFF
    line = header.line_base + adjusted % header.line_range
    return np.uint64(adjusted // header.line_range), line


@compiled_leaf
def _add_line(state: Any, delta: Any) -> None:
    """Add a signed number, given as two's complement, to the line."""
    state.line = np.uint32((np.uint64(state.line) + delta) & np.uint64(0xFFFFFFFF))


@compiled_leaf
def _operands(data: Bytes, header: Any, opcode: Int) -> Any:
    """How many operands follow a standard opcode that changes nothing of interest.

    The header's word counts for unknown opcodes only (LLVM: DWARFDebugLine.cpp parse).
    """
    if opcode in _ONE_OPERAND:
        return 1
    return 0 if opcode in _NO_OPERAND else np.int64(data[header.lengths + opcode - 1])


@compiled_leaf
def _standard(data: Bytes, header: Any, state: Any, opcode: Int, at: Int) -> Any:
    """Run a standard opcode that makes no row; the position behind it, -1 if cut off."""
    if opcode == _ADVANCE_PC:
        operation, at = uleb(data, at, header.end)
        _advance(header, state, operation)
    elif opcode == _ADVANCE_LINE:
        delta, at = sleb(data, at, header.end)
        _add_line(state, delta)
    elif opcode == _SET_FILE:
        file, at = uleb(data, at, header.end)
        state.file = np.int32(file & np.uint64(0xFFFF))
    elif opcode == _CONST_ADD_PC:
        _advance(header, state, _special_advance(header, 255)[0])
    elif opcode == _FIXED_ADVANCE_PC:
        distance, at = fixed(data, at, header.end, 2)
        state.address += distance
        state.index = 0
    else:
        for _ in range(_operands(data, header, opcode)):
            _, at = uleb(data, at, header.end)
    return at


@compiled_leaf
def _set_address(data: Bytes, header: Any, state: Any, at: Int, size: Int) -> None:
    """Run DW_LNE_set_address; an operand of odd size is passed over."""
    if size == 1 or size == 2 or size == 4 or size == 8:
        address, behind = fixed(data, at, header.end, size)
        if behind >= 0:
            highest = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * size)
            state.address, state.index = address, 0
            state.dropped = address == highest


@compiled_leaf
def _extended(data: Bytes, header: Any, state: Any, at: Int) -> Any:
    """Run an extended opcode, whose length is at `at`; the position behind it, -1 if cut off."""
    length, at = uleb(data, at, header.end)
    if at < 0 or length > np.uint64(header.end - at):
        return -1
    behind = at + np.int64(length)
    opcode = data[at] if behind > at else 0
    if opcode == _END_SEQUENCE:
        state.emits, state.ends = True, True
    elif opcode == _SET_ADDRESS:
        _set_address(data, header, state, at + 1, behind - at - 1)
    elif opcode == _DEFINE_FILE:
        state.defines = at + 1
    elif opcode == _SET_DISCRIMINATOR:
        value, _ = uleb(data, at + 1, header.end)
        state.discriminator = np.uint32(value & np.uint64(0xFFFFFFFF))
    return behind


@compiled_leaf
def _step(data: Bytes, header: Any, state: Any, at: Int) -> Any:
    """Run the opcode at `at`; the position behind it, -1 if it is cut off."""
    opcode = np.int64(data[at])
    at += 1
    state.emits, state.ends, state.defines = False, False, -1
    if opcode == 0:
        return _extended(data, header, state, at)
    if opcode >= header.opcode_base:
        operation, line = _special_advance(header, opcode)
        _advance(header, state, operation)
        _add_line(state, np.uint64(line))
        state.emits = True
        return at
    if opcode == _COPY:
        state.emits = True
        return at
    return _standard(data, header, state, opcode, at)


@compiled_leaf
def _put_row(rows: Any, count: Int, state: Any) -> None:
    """Set row `count` to the registers."""
    row = rows[count]
    row.address, row.line, row.file = state.address, state.line, state.file
    row.discriminator = state.discriminator
    state.discriminator = 0


@compiled_leaf
def _put_sequence(sequences: Any, count: Int, rows: Any, first: Int, behind: Int) -> Int:
    """Put the rows from `first` up to `behind` as sequence `count`; how many there are then."""
    if behind - first < 2 or rows[first].address >= rows[behind - 1].address:
        return count
    sequence = sequences[count]
    sequence.low, sequence.high = rows[first].address, rows[behind - 1].address
    sequence.first, sequence.last = first, behind - 1
    return count + 1


_ROWS, _SEQUENCES, _DEFINED, _FIRST = range(4)


@compiled_leaf
def _is_full(rows: Any, sequences: Any, defined: Any, used: Any) -> Any:
    return (
        used[_ROWS] == len(rows)
        or used[_SEQUENCES] == len(sequences)
        or used[_DEFINED] == len(defined)
    )


@compiled_leaf
def _run(
    data: Bytes, header: Any, state: Any, at: Int, rows: Any, sequences: Any, defined: Any,
    used: Any,
) -> Int:  # fmt: skip
    """Run from `at` on while there is room; the position behind, -1 if the program is cut off.

    `used` (4,) counts what is filled of the three tables; the last one is the first row of the
    sequence that is running.
    """
    while 0 <= at < header.end:
        if _is_full(rows, sequences, defined, used):
            return at
        at = _step(data, header, state, at)
        if state.defines >= 0:
            defined[used[_DEFINED]] = state.defines
            used[_DEFINED] += 1
        if state.emits and not state.dropped:
            _put_row(rows, used[_ROWS], state)
            used[_ROWS] += 1
        if state.ends:
            first, behind = used[_FIRST], used[_ROWS]
            used[_SEQUENCES] = _put_sequence(sequences, used[_SEQUENCES], rows, first, behind)
            used[_FIRST] = behind
            _reset(state)
    return at


@compiled
def run_program(data: Bytes, header: Any, state: Any) -> tuple[Any, Any, Any, bool]:
    """Run a line program: (rows of `ROW`, of `SEQUENCE`, positions of defined files, complete).

    Sequences come in the order of the program. `state` is one row of `STATE`, whatever it holds.
    Every opcode takes a byte at least, so the run ends.
    """
    rows, sequences = np.empty(256, ROW), np.empty(16, SEQUENCE)
    defined, used = np.empty(4, np.int64), np.zeros(4, np.int64)
    _reset(state)
    state.dropped = False
    at = header.program
    while 0 <= at < header.end:
        at = _run(data, header, state, at, rows, sequences, defined, used)
        rows = grown(rows, used[_ROWS])
        sequences = grown(sequences, used[_SEQUENCES])
        defined = grown(defined, used[_DEFINED])
    is_complete = at >= 0 and used[_ROWS] == used[_FIRST]
    return (
        rows[: used[_ROWS]], sequences[: used[_SEQUENCES]], defined[: used[_DEFINED]], is_complete
    )  # fmt: skip


@compiled_leaf
def _first_ending_above(sequences: Any, address: Any) -> Any:
    """Index of the first sequence, in order of their ends, that ends above an address."""
    low, high = 0, len(sequences)
    while low < high:
        middle = (low + high) // 2
        if sequences[middle].high > address:
            high = middle
        else:
            low = middle + 1
    return low


@compiled_leaf
def _last_at_or_below(rows: Any, first: Int, last: Int, address: Any) -> Any:
    """The last of the rows `first` to `last` (exclusive) that is not above an address."""
    while first + 1 < last:
        middle = (first + last) // 2
        if rows[middle].address > address:
            last = middle
        else:
            first = middle
    return first


@compiled_leaf
def _fill_found(addresses: Any, rows: Any, sequences: Any, found: Any) -> None:
    for i in range(len(addresses)):
        k = _first_ending_above(sequences, addresses[i])
        if k < len(sequences) and sequences[k].low <= addresses[i]:
            sequence = sequences[k]
            found[i] = _last_at_or_below(rows, sequence.first, sequence.last, addresses[i])


@compiled
def look_up(addresses: Any, rows: Any, sequences: Any) -> Any:
    """Row of each address: (n,) i64, -1 where no sequence covers it.

    Sequences must be sorted by their ends. Only the first that ends above the address is asked,
    and of its rows the last one at or below the address (LLVM: DWARFDebugLine.cpp
    lookupAddressImpl, findRowInSeq).
    """
    found = np.full(len(addresses), -1, np.int64)
    _fill_found(addresses, rows, sequences, found)
    return found
