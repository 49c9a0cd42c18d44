"""Line programs: against a plain interpreter, and on real tables against pyelftools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from builders.dwarf import abbreviation, dwarf, sleb, u64, uleb, unit, words
from builders.fixtures import Corpus, Tool
from builders.programs import compile_program
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf import _lines as native
from lbr2pgo.program.dwarf.loader import SectionReader
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.program.elf.image import Image

LENGTHS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
LINE_BASE, LINE_RANGE, OPCODE_BASE = -5, 14, 13


def table(program: bytes, *, minimum: int = 1, operations: int = 1, version: int = 4) -> bytes:
    """A line table with one file around a program."""
    prologue = bytes([minimum]) + (bytes([operations]) if version >= 4 else b"")
    prologue += bytes([1, LINE_BASE & 0xFF, LINE_RANGE, OPCODE_BASE]) + LENGTHS + b"\0f\0\0\0\0\0"
    body = version.to_bytes(2, "little") + len(prologue).to_bytes(4, "little") + prologue + program
    return len(body).to_bytes(4, "little") + body


ROOT = abbreviation(1, "compile_unit", ("stmt_list", "sec_offset")) + b"\0"


def file_with(data: bytes, offset: int = 0, **sections: bytes) -> Dwarf:
    """A file with one unit, whose line table stands at an offset of .debug_line."""
    info = unit(b"\x01" + words(offset, size=4))
    return dwarf(info=info, abbrev=ROOT, line=data, **sections)


def run(
    data: bytes, wanted: list[int] | None = None
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[str | None], bool]:
    """Rows (address, line, discriminator, file), sequences, files, completeness."""
    found = file_with(data)
    asked = None if wanted is None else u64(*wanted)
    ran = native.run_program(found.with_lines(0), found.units, 0, asked)
    assert ran is not None
    _, rows, sequences, _, files, complete = ran
    names = found.texts.decode(files["place"].copy())
    return rows.tolist(), sequences.tolist(), names, complete


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
    column: int = 0

    def advance(self, operation: int) -> None:
        total = self.index + operation
        self.address += self.minimum * (total // self.operations)
        self.index = total % self.operations

    def emit(self) -> None:
        self.rows.append((self.address, self.line, self.discriminator, self.file, self.column))
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

    def set_column(self, operand: int) -> None:
        self.column = operand
        self.encoded += b"\x05" + uleb(operand)

    def neutral(self, operand: int) -> None:
        self.encoded += self.NEUTRAL[operand % len(self.NEUTRAL)]

    NEUTRAL = (b"\x06", b"\x07", b"\x0a", b"\x0b", b"\x0c\x03", b"\0\0",
               extended(0x80, b"vendor"))  # fmt: skip


OPERATIONS = (Machine.special, Machine.copy, Machine.advance_pc, Machine.advance_line,
              Machine.set_file, Machine.const_add_pc, Machine.fixed_advance_pc,
              Machine.set_discriminator, Machine.set_column, Machine.neutral)  # fmt: skip


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
        (16, 1, 0, 1, 0), (16, 1, 0, 1, 0),
    ]  # fmt: skip


def test_files_may_be_defined_by_the_program() -> None:
    program = extended(3, b"late.c\0\0\0\0") + set_address(16) + b"\x01" + END
    assert run(table(program))[2] == ["f", "late.c"]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", table(b"")[:20], table(b"", version=6)])
@pytest.mark.parametrize("offset", [0, 1 << 31])
def test_what_is_no_table_is_refused(data: bytes, offset: int) -> None:
    found = file_with(data, offset)
    assert native.run_program(found.with_lines(0), found.units, 0, None) is None


def test_a_unit_may_have_no_table() -> None:
    found = dwarf(info=unit(b"\x01"), abbrev=abbreviation(1, "compile_unit") + b"\0")
    assert native.run_program(found.with_lines(0), found.units, 0, None) is None


def test_only_sequences_with_wanted_addresses_keep_their_rows() -> None:
    copy, step = b"\x01", b"\x02\x04"
    program = (
        set_address(64) + copy + step + copy + step + END + set_address(16) + copy + step + END
    )
    assert run(table(program), [68])[:2] == (
        [(64, 1, 0, 1, 0), (68, 1, 0, 1, 0), (72, 1, 0, 1, 0)],
        [(64, 72, 0, 2), (16, 20, 3, 3)],
    )
    rows, sequences, _, complete = run(table(program), [4, 19, 20])
    assert [row[0] for row in rows] == [16, 20]
    assert [(low, high) for low, high, *_ in sequences] == [(64, 72), (16, 20)]
    assert complete
    assert run(table(program), [])[0] == []


def by_version_5(
    directories: bytes, files: bytes, **sections: bytes
) -> tuple[list[str | None], ...]:
    """Names of directories and of files, and directories of files."""
    prologue = bytes([1, 1, 1, LINE_BASE & 0xFF, LINE_RANGE, OPCODE_BASE]) + LENGTHS
    prologue += directories + files
    body = words(5, size=2) + b"\x08\0" + words(len(prologue), size=4) + prologue
    found = file_with(words(len(body), size=4) + body, **sections)
    ran = native.run_program(found.with_lines(0), found.units, 0, None)
    assert ran is not None
    _, _, _, first, second, _ = ran
    names = [found.texts.decode(names["place"].copy()) for names in (first, second)]
    return *names, second["directory"].tolist()


STRING, UDATA, LINE_STRP, DATA16 = 0x08, 0x0F, 0x1F, 0x1E
PATH, DIRECTORY, MD5 = 1, 2, 5


def test_tables_of_dwarf_5_say_what_their_entries_consist_of() -> None:
    directories = bytes([1, PATH, LINE_STRP, 2]) + words(1, 6, size=4)
    files = bytes([3, PATH, STRING, MD5, DATA16, DIRECTORY, UDATA, 2])
    files += b"a.c\0" + bytes(16) + b"\x01" + b"b.c\0" + bytes(16) + b"\x00"
    found = by_version_5(directories, files, line_str=b"\0/top\0inner\0")
    assert found == (["/top", "inner"], ["a.c", "b.c"], [1, 0])


def test_tables_end_at_an_entry_that_is_damaged() -> None:
    directories = bytes([1, PATH, STRING, 1]) + b"/top\0"
    assert by_version_5(directories, bytes([1, PATH, STRING, 9]) + b"a.c\0") == (
        ["/top"], ["a.c"], [0],
    )  # fmt: skip
    assert by_version_5(bytes([1, PATH, 0x02, 1]), directories) == ([], [], [])
    endless = bytes([0]) + uleb((1 << 64) - 1)  # entries without bytes
    assert by_version_5(endless, directories) == ([], [], [])


def look_up(
    rows: list[tuple[int, int]], sequences: list[tuple[int, ...]], addresses: list[int]
) -> list[int]:
    """Number of the row, (address, file), that each address is found in; -1 where in none."""
    table = np.zeros(len(rows), native.ROW)
    table["address"], table["file"] = np.array(rows, np.uint64).T
    table["line"] = np.arange(len(rows))
    ordered = np.array(sequences, native.SEQUENCE)
    found = native.look_up(u64(*addresses), table, ordered, 1, 3)
    return np.where(found["is_there"], found["line"].astype(np.int64), -1).tolist()


def test_the_row_of_an_address_is_the_last_at_or_below_it() -> None:
    rows = [(16, 1), (20, 1), (20, 1), (24, 1), (32, 1)]
    addresses = [15, 16, 19, 20, 23, 24, 31, 32]
    assert look_up(rows, [(16, 32, 0, 4)], addresses) == [-1, 0, 0, 2, 2, 3, 3, -1]


def test_of_overlapping_sequences_the_one_that_ends_first_is_asked() -> None:
    rows = [(0, 1), (32, 1), (16, 1), (64, 1)]
    assert look_up(rows, [(0, 32, 0, 1), (16, 64, 2, 3)], [8, 24, 40]) == [0, 0, 2]
    # Even if it starts behind the address, and another does not.
    rows = [(16, 1), (20, 1), (0, 1), (64, 1)]
    assert look_up(rows, [(16, 20, 0, 1), (0, 64, 2, 3)], [8, 16, 40]) == [-1, 0, 2]


def test_a_row_whose_file_is_not_there_answers_nothing() -> None:
    rows = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 1)]
    assert look_up(rows, [(0, 4, 0, 4)], [0, 1, 2, 3]) == [-1, 1, 2, -1]


@pytest.fixture(scope="module", params=["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
def compiled(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tool: Tool,
) -> Path:
    target = tmp_path_factory.mktemp("lines") / "program"
    return compile_program(target, tool("g++"), "-g", request.param)


def test_real_tables_have_the_rows_and_files_that_pyelftools_reads(compiled: Path) -> None:
    compare_with_pyelftools(compiled)


def test_sqlite_has_the_rows_that_pyelftools_reads(corpus: Corpus) -> None:
    compare_with_pyelftools(corpus("sqlite/sq.zst"))


def compare_with_pyelftools(path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    ours = Dwarf(str(path), SectionReader(Image.open(path), Counter()))
    with path.open("rb") as file:
        theirs = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False)
        for index, each in enumerate(theirs.iter_CUs()):
            program = theirs.line_program_for_CU(each)
            assert program is not None
            ran = native.run_program(ours.with_lines(index), ours.units, index, None)
            assert ran is not None
            _, rows, _, directories, files, complete = ran
            states = [entry.state for entry in program.get_entries() if entry.state is not None]
            expected = [(s.address, s.line, s.discriminator, s.file, s.column) for s in states]
            assert rows.tolist() == expected
            assert complete
            names, known = program["file_entry"], program["include_directory"]
            decoded = [ours.texts.decode(part["place"].copy()) for part in (files, directories)]
            assert decoded[0] == [entry.name.decode() for entry in names]
            assert decoded[1] == [name.decode() for name in known]
            assert files["directory"].tolist() == [entry.dir_index for entry in names]
