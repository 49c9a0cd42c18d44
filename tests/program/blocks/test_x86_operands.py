"""Operands and registers that are set, against capstone's."""

from __future__ import annotations

from typing import Any

import capstone
import pytest
from capstone import x86
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbr2pgo.program.blocks.x86_operands import (
    UNUSUAL,
    Instruction,
    Memory,
    OperandReader,
    read_usual,
)

LONGEST = 15
REGISTERS = (
    ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"],
    ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"],
    ["ah", "ch", "dh", "bh"],
)
CAPSTONE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
CAPSTONE.detail = True

instructions = st.builds(
    lambda first, wide, escape, rest: (bytes(first) + wide + escape + rest)[:LONGEST],
    st.lists(st.sampled_from((0x66, 0x2E, 0x3E, 0x64, 0xF2, 0xF3)), max_size=2),
    st.sampled_from((b"", *(bytes([byte]) for byte in range(0x40, 0x50)))),
    st.sampled_from((b"", b"", b"\x0f")),
    st.binary(min_size=LONGEST, max_size=LONGEST),
)


def number_of(register: int) -> int | None:
    """The register's, by capstone's name of it or of a part of it."""
    name = CAPSTONE.reg_name(register) or ""
    if name[1:].rstrip("dwb").isdigit() and name.startswith("r"):
        return int(name[1:].rstrip("dwb"))
    for names in REGISTERS:
        for found in (name, name[1:]):
            if found in names and (found == name or name[0] in "re"):
                return names.index(found)
    return None


def disassembled(code: bytes) -> Any:
    return next(CAPSTONE.disasm(code, 0, 1), None)


def written(instruction: Any) -> set[int]:
    numbers = map(number_of, instruction.regs_access()[1])
    return {number for number in numbers if number is not None}


@settings(max_examples=2000, deadline=None)
@given(instructions)
@example(bytes.fromhex("b401"))  # to ah, which is a part of rax
@example(bytes.fromhex("40b401"))  # to spl
@example(bytes.fromhex("4190"))  # xchg, where 90 alone is nop
def test_a_usual_instruction_sets_what_capstone_says(code: bytes) -> None:
    found = disassembled(code)
    usual = read_usual(bytes(found.bytes)) if found else None
    if usual is not None and usual.opcode != 0xA9:  # capstone lets `test %eax` set it
        assert usual.written == written(found)


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from((0x01, 0x63, 0x8B, 0x8D, 0xFF)), instructions)
def test_an_operand_in_memory_is_capstones(opcode: int, other: bytes) -> None:
    found = disassembled(bytes([*(b for b in other[:1] if b & 0xF0 == 0x40), opcode]) + other[1:])
    usual = read_usual(bytes(found.bytes)) if found else None
    if usual is None or not isinstance(usual.other, Memory):
        return
    memory = next(each.mem for each in found.operands if each.type == x86.X86_OP_MEM)
    assert usual.other.is_relative == (memory.base == x86.X86_REG_RIP)
    assert usual.other.base == number_of(memory.base)
    assert usual.other.index == number_of(memory.index)
    assert usual.other.scale == memory.scale
    assert usual.other.displacement == memory.disp


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ff24c500100000", Memory(None, 0, 8, 0x1000, False, False)),
        ("3eff24c500100000", Memory(None, 0, 8, 0x1000, False, True)),
        ("488d0510000000", Memory(None, None, 1, 0x10, True, False)),
        ("4a63048b", Memory(3, 9, 4, 0, False, False)),
        ("4c01c8", 0),
    ],
)
def test_operands_of_jump_tables(code: str, expected: int | Memory) -> None:
    found = read_usual(bytes.fromhex(code))
    assert found is not None
    assert found.other == expected


@pytest.mark.parametrize("code", ["f7f1", "0fc8", "f3480fb8c1", "87c8", "660f6ec8", "4190"])
def test_of_an_unusual_instruction_is_told_what_it_sets(code: str) -> None:
    assert read_usual(bytes.fromhex(code)) is None
    sets = frozenset(written(disassembled(bytes.fromhex(code))))
    assert OperandReader().read(bytes.fromhex(code)) == Instruction(
        UNUSUAL, False, None, None, sets
    )


def test_what_is_no_instruction_sets_nothing() -> None:
    assert OperandReader().read(b"\x06").written == frozenset()


@pytest.mark.parametrize("code", [b"", b"\x66", b"\x48", b"\x0f", b"\x66\x48\x0f", b"\x8b"])
def test_data_among_code_that_begins_as_an_instruction_sets_nothing(code: bytes) -> None:
    found = OperandReader().read(code)
    assert (found.opcode, found.written) == (UNUSUAL, frozenset())
