"""Line programs: against a plain interpreter, and on real tables against pyelftools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from builders.programs import compile_program
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native import dwarf_lines as kernels
from lbr2pgo.native.dwarf_file_tables import read_file_tables

LENGTHS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
LINE_BASE, LINE_RANGE, OPCODE_BASE = -5, 14, 13


def table(program: bytes, *, minimum: int = 1, operations: int = 1, version: int = 4) -> bytes:
    """A line table without files around a program."""
    prologue = bytes([minimum]) + (bytes([operations]) if version >= 4 else b"")
    prologue += bytes([1, LINE_BASE & 0xFF, LINE_RANGE, OPCODE_BASE]) + LENGTHS + b"\0f\0\0\0\0\0"
    body = version.to_bytes(2, "little") + len(prologue).to_bytes(4, "little") + prologue + program
    return len(body).to_bytes(4, "little") + body


def run(data: bytes) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[int], bool]:
    """Rows (address, line, discriminator, file), sequences, defined files, completeness."""
    section = np.frombuffer(data, np.uint8)
    header = np.zeros(1, kernels.HEADER)
    assert kernels.read_header(section, 0, 8, header[0])
    rows, sequences, defined, complete = kernels.run_program(
        section, header[0], np.zeros(1, kernels.STATE)[0]
    )
    return rows.tolist(), sequences.tolist(), defined.tolist(), complete


def uleb(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + uleb(high) if high else bytes([low])


def sleb(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low]) if high == -(low >> 6) else bytes([low | 0x80]) + sleb(high)


def extended(opcode: int, operands: bytes = b"") -> bytes:
    return b"\0" + uleb(1 + len(operands)) + bytes([opcode]) + operands


def set_address(address: int) -> bytes:
    return extended(2, address.to_bytes(8, "little"))


END = extended(1)


@dataclass
class Machine:
    """The line machine of DWARF 5, 6.2, a register at a time."""

    minimum: int
    operations: int
    rows: list[tuple[int, ...]] = field(default_factory=list)
    encoded: bytes = b""
    address: int = 0
    index: int = 0
    line: int = 1
    file: int = 1
    discriminator: int = 0

    def advance(self, operation: int) -> None:
        total = self.index + operation
        self.address += self.minimum * (total // self.operations)
        self.index = total % self.operations

    def emit(self) -> None:
        self.rows.append((self.address, self.line, self.discriminator, self.file))
        self.discriminator = 0

    def special(self, operand: int) -> None:
        opcode = OPCODE_BASE + operand % (256 - OPCODE_BASE)
        self.advance((opcode - OPCODE_BASE) // LINE_RANGE)
        self.line = (self.line + LINE_BASE + (opcode - OPCODE_BASE) % LINE_RANGE) % (1 << 32)
        self.emit()
        self.encoded += bytes([opcode])

    def copy(self, _: int) -> None:
        self.emit()
        self.encoded += b"\x01"

    def advance_pc(self, operand: int) -> None:
        self.advance(operand)
        self.encoded += b"\x02" + uleb(operand)

    def advance_line(self, operand: int) -> None:
        self.line = (self.line + operand - 500) % (1 << 32)
        self.encoded += b"\x03" + sleb(operand - 500)

    def set_file(self, operand: int) -> None:
        self.file = operand
        self.encoded += b"\x04" + uleb(operand)

    def const_add_pc(self, _: int) -> None:
        self.advance((255 - OPCODE_BASE) // LINE_RANGE)
        self.encoded += b"\x08"

    def fixed_advance_pc(self, operand: int) -> None:
        self.address, self.index = self.address + operand, 0
        self.encoded += b"\x09" + operand.to_bytes(2, "little")

    def set_discriminator(self, operand: int) -> None:
        self.discriminator = operand
        self.encoded += extended(4, uleb(operand))

    def neutral(self, operand: int) -> None:
        self.encoded += self.NEUTRAL[operand % len(self.NEUTRAL)]

    NEUTRAL = (b"\x05\x81\x01", b"\x06", b"\x07", b"\x0a", b"\x0b", b"\x0c\x03", b"\0\0",
               extended(0x80, b"vendor"))  # fmt: skip


OPERATIONS = (Machine.special, Machine.copy, Machine.advance_pc, Machine.advance_line,
              Machine.set_file, Machine.const_add_pc, Machine.fixed_advance_pc,
              Machine.set_discriminator, Machine.neutral)  # fmt: skip


@settings(deadline=None)  # the first call compiles
@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 999)), max_size=60),
    st.sampled_from([1, 4]),
    st.sampled_from([1, 3]),
)
def test_random_programs_give_the_rows_of_a_plain_machine(
    operations: list[tuple[Callable[[Machine, int], None], int]], minimum: int, per_instruction: int
) -> None:
    machine = Machine(minimum, per_instruction, address=0x1000)
    for operation, operand in operations:
        operation(machine, operand)
    data = table(set_address(0x1000) + machine.encoded, minimum=minimum, operations=per_instruction)
    rows, sequences, _, complete = run(data)
    assert rows == machine.rows
    assert sequences == []
    assert complete == (not rows)


def test_sequences_end_before_their_last_row() -> None:
    copy, step = b"\x01", b"\x02\x04"
    program = (
        set_address(64) + copy + step + copy + step + END + set_address(16) + copy + step + END
    )
    rows, sequences, _, complete = run(table(program))
    assert [row[0] for row in rows] == [64, 68, 72, 16, 20]
    assert sequences == [(64, 72, 0, 2), (16, 20, 3, 4)]
    assert complete


@pytest.mark.parametrize("address", [(1 << 64) - 1])
def test_rows_of_dropped_code_are_left_out(address: int) -> None:
    dead = set_address(address) + b"\x01\x02\x04\x01" + END
    alive = set_address(16) + b"\x01\x02\x04" + END
    rows, sequences, _, complete = run(table(dead + alive))
    assert [row[0] for row in rows] == [16, 20]
    assert sequences == [(16, 20, 0, 1)]
    assert complete


def test_empty_and_backward_sequences_are_none() -> None:
    empty = set_address(16) + END
    backward = set_address(32) + b"\x01" + set_address(16) + END
    assert run(table(empty + backward))[1] == []


@pytest.mark.parametrize(
    "program",
    [
        set_address(16) + b"\x01\x02\x80",
        set_address(16) + b"\x01\x03\xff",
        set_address(16) + b"\x01\x09\x01",
        set_address(16) + b"\x01\0\x7f\x02",
        set_address(16) + b"\x01\0\x80",
        set_address(16) + b"\x01",
    ],
)
def test_a_cut_program_keeps_the_rows_before(program: bytes) -> None:
    rows, sequences, _, complete = run(table(program))
    assert [row[0] for row in rows] == [16]
    assert sequences == []
    assert not complete


def test_tables_before_dwarf_4_have_no_operations_per_instruction() -> None:
    assert run(table(set_address(16) + b"\x01" + END, version=3))[0] == [
        (16, 1, 0, 1), (16, 1, 0, 1),
    ]  # fmt: skip


def test_files_may_be_defined_by_the_program() -> None:
    data = table(extended(3, b"late.c\0\0\0\0") + set_address(16) + b"\x01" + END)
    _, _, defined, _ = run(data)
    assert [data[at : at + 6] for at in defined] == [b"late.c"]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", table(b"")[:20], table(b"", version=6)])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    section = np.frombuffer(data, np.uint8)
    assert not kernels.read_header(section, 0, 8, np.zeros(1, kernels.HEADER)[0])
    assert not kernels.read_header(section, 1 << 40, 8, np.zeros(1, kernels.HEADER)[0])


def test_the_row_of_an_address_is_the_last_at_or_below_it() -> None:
    rows = np.zeros(5, kernels.ROW)
    rows["address"] = [16, 20, 20, 24, 32]
    sequences = np.zeros(1, kernels.SEQUENCE)
    sequences[0] = (16, 32, 0, 4)
    addresses = np.array([15, 16, 19, 20, 23, 24, 31, 32], np.uint64)
    assert kernels.look_up(addresses, rows, sequences).tolist() == [-1, 0, 0, 2, 2, 3, 3, -1]


def test_of_overlapping_sequences_the_one_that_ends_first_is_asked() -> None:
    rows = np.zeros(4, kernels.ROW)
    rows["address"] = [0, 32, 16, 64]
    sequences = np.zeros(2, kernels.SEQUENCE)
    sequences["low"], sequences["high"] = [0, 16], [32, 64]
    sequences["first"], sequences["last"] = [0, 2], [1, 3]
    addresses = np.array([8, 24, 40], np.uint64)
    assert kernels.look_up(addresses, rows, sequences).tolist() == [0, 0, 2]


@pytest.fixture(scope="module", params=["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
def compiled(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
) -> Path:
    target = tmp_path_factory.mktemp("lines") / "program"
    return compile_program(target, tool("g++"), "-g", request.param)


def test_real_tables_have_the_rows_and_files_that_pyelftools_reads(compiled: Path) -> None:
    compare_with_pyelftools(compiled)


def test_sqlite_has_the_rows_that_pyelftools_reads(corpus: Callable[[str], Path]) -> None:
    compare_with_pyelftools(corpus("sqlite/sq.zst"))


def compare_with_pyelftools(path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
        section = np.frombuffer(elf.get_section_by_name(".debug_line").data(), np.uint8)
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            assert program is not None
            header = np.zeros(1, kernels.HEADER)
            offset = unit.get_top_DIE().attributes["DW_AT_stmt_list"].value
            assert kernels.read_header(section, offset, 8, header[0])
            rows, _, _, complete = kernels.run_program(
                section, header[0], np.zeros(1, kernels.STATE)[0]
            )
            states = [entry.state for entry in program.get_entries() if entry.state is not None]
            expected = [(s.address, s.line, s.discriminator, s.file) for s in states]
            assert rows.tolist() == expected
            assert complete
            assert len(read_file_tables(section, header[0])[1]) == len(program["file_entry"])
