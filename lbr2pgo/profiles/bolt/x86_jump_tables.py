"""Which instructions use a jump table, by the idioms that compilers emit on x86-64.

The idioms and their limits are BOLT's (BOLT: X86MCPlusBuilder.cpp, analyzeIndirectBranch)::

    jmp *TABLE(,%i,8)                 addresses
    mov TABLE(,%i,8), %r; jmp *%r     addresses
    lea TABLE(%rip), %b; movslq (%b,%i,4), %r; add %b, %r; jmp *%r      distances
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from capstone import x86

from lbr2pgo.profiles.bolt.lines import Lines
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.arrays import I64, U64

_LONGEST_SEARCH = 4096
_ALL_SEARCHES = 1 << 23
"""Instructions looked at before one jump, and before all jumps of a file, so that a hostile one
can't make this quadratic."""

_NO_REX_R = 0xFB  # masks REX.R, so that 48 and 4C are one
_NUMBERED = re.compile(r"(r\d+)[dwb]?$")
_LOW_BYTES = ("sil", "dil", "bpl", "spl")


@dataclass(frozen=True, slots=True)
class TableUse:
    """A place that uses a table."""

    table: int
    """Address of the table."""
    function: int
    jump: int
    """Address of the jump, 0 if unknown."""
    is_distances: bool
    """Whether entries are distances from the table's start instead of addresses."""


def rip_relative_leas(lines: Lines) -> tuple[I64, U64]:
    """Rows of `lea disp32(%rip), %r64`, and the addresses taken."""
    code = lines.bytes
    rows = np.flatnonzero(
        (lines.size == 7)
        & (code[:, 0] & _NO_REX_R == 0x48)
        & (code[:, 1] == 0x8D)
        & (code[:, 2] & 0xC7 == 0x05)
    )
    displacement = np.ascontiguousarray(code[rows, 3:7]).view("<i4").reshape(-1).astype(np.int64)
    after = lines.address[rows] + lines.size[rows].astype(np.uint64)
    return rows, after + displacement.astype(np.uint64)


def table_uses(lines: Lines) -> Iterator[TableUse]:
    """Tables that the indirect jumps use, as far as an idiom is recognised."""
    search = _Search(lines)
    for row in np.flatnonzero(lines.is_kind(Kind.INDIRECT_JUMP)).tolist():
        found = search.table_of(row)
        if found is not None:
            yield TableUse(found[0], int(lines.function[row]), int(lines.address[row]), found[1])


class _Search:
    """Looks backwards from a jump for what set its register."""

    def __init__(self, lines: Lines) -> None:
        import capstone

        self._lines = lines
        self._disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._disassembler.detail = True
        self._decoded: dict[int, tuple[Any, frozenset[str]]] = {}
        self._left = _ALL_SEARCHES

    def table_of(self, row: int) -> tuple[int, bool] | None:
        """Address of the table that a jump uses, and whether it holds distances."""
        jump, _ = self._decode(row)
        if jump is None or len(jump.operands) != 1:
            return None
        operand = jump.operands[0]
        if operand.type == x86.X86_OP_MEM:
            return _address_table(operand)
        register = self._name(operand.reg)
        for at, setter in self._setters(row, {register}):
            if _is_load(setter):
                return _address_table(setter.operands[1])
            if not _is_add(setter):
                return None
            other = self._name(setter.operands[1].reg)
            table = None if other == register else self._distance_table(at, register, other)
            return None if table is None else (table, True)
        return None

    def _distance_table(self, row: int, first: str, second: str) -> int | None:
        """Address that `lea` sets in one register where `movslq` sets the other from it."""
        base = None
        for at, setter in self._setters(row, {first, second}):
            name = self._name(setter.operands[0].reg) if setter.operands else ""
            if base is None:
                if not _is_indexed_movslq(setter):
                    return None
                base = second if name == first else first
                if self._name(setter.operands[1].mem.base) != base:
                    return None
            elif base in self._decode(at)[1]:
                return (
                    _rip_relative(setter) if setter.id == x86.X86_INS_LEA and name == base else None
                )
        return None

    def _setters(self, row: int, registers: set[str]) -> Iterator[tuple[int, Any]]:
        """Instructions before a row, in the same function, that set any of the registers."""
        function = self._lines.function[row]
        for at in range(row - 1, max(-1, row - 1 - _LONGEST_SEARCH), -1):
            self._left -= 1
            if self._left < 0 or self._lines.function[at] != function:
                return
            instruction, written = self._decode(at)
            if registers & written:
                yield at, instruction

    def _decode(self, row: int) -> tuple[Any, frozenset[str]]:
        """An instruction, None if it is none, and the registers that it sets."""
        if row not in self._decoded:
            code = self._lines.bytes[row, : self._lines.size[row]].tobytes()
            address = int(self._lines.address[row])
            instruction = next(self._disassembler.disasm(code, address, 1), None)
            written = instruction.regs_access()[1] if instruction is not None else ()
            self._decoded[row] = instruction, frozenset(map(self._name, written))
        return self._decoded[row]

    def _name(self, register: int) -> str:
        """Name of the 64-bit register that a register is part of."""
        return _whole(self._disassembler.reg_name(register) or "")


@cache
def _whole(name: str) -> str:
    if match := _NUMBERED.match(name):
        return match[1]
    letters = name.lstrip("re")
    if letters in ("al", "ah", "bl", "bh", "cl", "ch", "dl", "dh"):
        return f"r{letters[0]}x"
    return f"r{letters.removesuffix('l') if letters in _LOW_BYTES else letters}"


def _is_load(instruction: Any) -> bool:
    """A `mov` of 16, 32 or 64 bits from memory to a register."""
    return bool(
        instruction.id == x86.X86_INS_MOV
        and instruction.opcode[0] == 0x8B
        and instruction.operands[1].type == x86.X86_OP_MEM
    )


def _is_add(instruction: Any) -> bool:
    """An `add` of two 64-bit registers."""
    operands = instruction.operands
    return bool(
        instruction.id == x86.X86_INS_ADD
        and instruction.opcode[0] == 0x01
        and all(o.type == x86.X86_OP_REG and o.size == 8 for o in operands)
    )


def _is_indexed_movslq(instruction: Any) -> bool:
    """A `movslq (%b,%i,4), %r64`."""
    if instruction.id != x86.X86_INS_MOVSXD or instruction.operands[0].size != 8:
        return False
    source = instruction.operands[1]
    memory = source.mem
    return bool(
        source.type == x86.X86_OP_MEM
        and memory.index
        and (memory.scale, memory.disp, memory.segment) == (4, 0, 0)
    )


def _rip_relative(instruction: Any) -> int | None:
    """Address that an operand relative to the next instruction means."""
    memory = instruction.operands[1].mem
    if memory.base != x86.X86_REG_RIP or memory.index or memory.segment:
        return None
    return int(instruction.address + instruction.size + memory.disp)


def _address_table(operand: Any) -> tuple[int, bool] | None:
    """Table of addresses that an operand `TABLE(,%i,8)` means."""
    memory = operand.mem
    if memory.base or memory.segment or not memory.index or memory.scale != 8 or memory.disp <= 0:
        return None
    return int(memory.disp), False
