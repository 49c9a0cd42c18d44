"""What BOLT looks for in x86-64 code (BOLT: X86MCPlusBuilder.cpp).

Jump tables are recognised by the idioms that compilers emit, within BOLT's limits
(analyzeIndirectBranch)::

    jmp *TABLE(,%i,8)                 addresses
    mov TABLE(,%i,8), %r; jmp *%r     addresses
    lea TABLE(%rip), %b; movslq (%b,%i,4), %r; add %b, %r; jmp *%r      distances
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from capstone import x86

from lbr2pgo.native.x86_branches import address_filter, find_branches
from lbr2pgo.profiles.bolt.disassembly import Disassembly
from lbr2pgo.profiles.bolt.idioms import Idioms, TableUses
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U8, Bools

_MASK = (1 << 64) - 1
_LONGEST_SEARCH = 4096
_ALL_SEARCHES = 1 << 23
"""Instructions looked at before one jump, and before all jumps of a file, so that a hostile one
can't make this quadratic."""

_LOCK, _INT3, _REX_W, _ADDRESS_SIZE = 0xF0, 0xCC, 0x48, 0x67
_TWO_BYTES, _SYSRET_SYSEXIT = 0x0F, (0x07, 0x35)
_LOOP_JCXZ = (0xE0, 0xE1, 0xE2, 0xE3)
_NO_REX_R = 0xFB  # masks REX.R, so that 48 and 4C are one
_LEA, _RIP_RELATIVE, _LEA_SIZE = 0x8D, 0x05, 7

_BRANCHES_AT_ONCE = 1 << 16

_NUMBERED = re.compile(r"(r\d+)[dwb]?$")
_LOW_BYTES = ("sil", "dil", "bpl", "spl")

# `int3`, then any of: `nop` in its many lengths, zeros, jumps ahead (Intel SDM vol. 2, NOP).
_PADDING = re.compile(
    rb"\xcc*(?:[\x66\x2e\x48]*(?:\x90|\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5}))"
    rb"|\x00|\xeb[\x00-\x7f]|\xe9..[\x00-\xff]\x00)*",
    re.DOTALL,
)


def normalized(code: Disassembly) -> Disassembly:
    """Part prefixes from instructions, and let what comes back end no block.

    `lock` is an instruction of its own, which another branch may jump over (LLVM:
    X86InstrInfo.td); `int3` and the returns from system calls end no block.
    """
    code = _split_locks(code)
    code.kind[_comes_back(code)] = Kind.OTHER
    return code


def _split_locks(code: Disassembly) -> Disassembly:
    """Make each `lock` prefix a row of its own."""
    is_locked = (code.byte(0) == _LOCK) & (code.size > 1)
    if not is_locked.any():
        return code
    split = code.take(np.repeat(np.arange(len(code)), 1 + is_locked))
    behind = np.flatnonzero(is_locked) + np.arange(1, is_locked.sum() + 1)
    split.size[behind - 1] = 1
    split.size[behind] -= np.uint8(1)
    split.address[behind] += np.uint64(1)
    split.offset[behind] += 1
    split.kind[behind] = Kind.OTHER
    split.has_target[behind] = False
    return split


def _comes_back(code: Disassembly) -> Bools:
    """Instructions that leave the straight line but end no block in BOLT."""
    first, second = code.byte(0), code.byte(1)
    system = (first == _TWO_BYTES) & np.isin(second, _SYSRET_SYSEXIT)
    wide = (first == _REX_W) & (second == _TWO_BYTES) & np.isin(code.byte(2), _SYSRET_SYSEXIT)
    breakpoint_ = (first == _INT3) & (code.size == 1)
    found: Bools = system | wide | breakpoint_
    return found


def uses_short_loop(code: Disassembly) -> Bools:
    """(n,): `loop` and `jrcxz`, which BOLT can't move (BOLT: isUnsupportedInstruction)."""
    first = code.byte(0)
    first = np.where(first == _ADDRESS_SIZE, code.byte(1), first)
    return code.is_kind(Kind.COND) & np.isin(first, _LOOP_JCXZ)


def rip_relative_leas(code: Disassembly) -> tuple[I64, ImageAddresses]:
    """Rows of `lea disp32(%rip), %r64`, and the addresses taken."""
    rows = np.flatnonzero(
        (code.size == _LEA_SIZE)
        & (code.byte(0) & _NO_REX_R == _REX_W)
        & (code.byte(1) == _LEA)
        & (code.byte(2) & 0xC7 == _RIP_RELATIVE)
    )
    fields = code.data[code.offset[rows][:, np.newaxis] + np.arange(3, _LEA_SIZE)]
    displacement = fields.view("<i4").reshape(-1).astype(np.int64)
    return rows, code.address[rows] + np.uint64(_LEA_SIZE) + displacement.view(np.uint64)


def branches_to(code: U8, address: int, targets: ImageAddresses) -> ImageAddresses:
    """Sources of what looks, at any byte of some code, like a direct branch to a target.

    Targets ascend.
    """
    wanted, found = address_filter(targets), np.empty((_BRANCHES_AT_ONCE, 2), np.uint64)
    sources = [np.empty(0, np.uint64)]
    at = 0
    while at + 1 < len(code):
        at, count = find_branches(code, at, address, wanted, found)
        source, target = found[:count].T
        place = np.minimum(np.searchsorted(targets, target), len(targets) - 1)
        sources.append(source[targets[place] == target])
    return np.concatenate(sources)


def jump_tables(code: Disassembly) -> TableUses:
    """Tables that the indirect jumps use, as far as an idiom is recognised."""
    search = _Search(code)
    jumps = np.flatnonzero(code.is_kind(Kind.INDIRECT_JUMP))
    found = [(row, table) for row in jumps.tolist() if (table := search.table_of(row))]
    rows = np.array([row for row, _ in found], np.int64)
    return TableUses(
        table=np.array([table for _, (table, _) in found], np.uint64),
        function=code.function[rows],
        jump=code.address[rows],
        is_distances=np.array([is_distances for _, (_, is_distances) in found], np.bool_),
    )


class _Search:
    """Looks backwards from a jump for what set its register."""

    def __init__(self, code: Disassembly) -> None:
        import capstone

        self._code = code
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
        function = self._code.function[row]
        for at in range(row - 1, max(-1, row - 1 - _LONGEST_SEARCH), -1):
            self._left -= 1
            if self._left < 0 or self._code.function[at] != function:
                return
            instruction, written = self._decode(at)
            if registers & written:
                yield at, instruction

    def _decode(self, row: int) -> tuple[Any, frozenset[str]]:
        """An instruction, None if it is none, and the registers that it sets."""
        if row not in self._decoded:
            address = int(self._code.address[row])
            instruction = next(self._disassembler.disasm(self._code.code(row), address, 1), None)
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
    return int(instruction.address + instruction.size + memory.disp) & _MASK


def _address_table(operand: Any) -> tuple[int, bool] | None:
    """Table of addresses that an operand `TABLE(,%i,8)` means."""
    memory = operand.mem
    if memory.base or memory.segment or not memory.index or memory.scale != 8 or memory.disp <= 0:
        return None
    return int(memory.disp), False


X86_64 = Idioms(
    normalized=normalized,
    taken_addresses=rip_relative_leas,
    jump_tables=jump_tables,
    unsupported=uses_short_loop,
    padding=_PADDING,
    branches_to=branches_to,
)
