"""What BOLT looks for in x86-64 code (BOLT: X86MCPlusBuilder.cpp).

Jump tables are recognised by the idioms that compilers emit, within BOLT's limits
(analyzeIndirectBranch)::

    jmp *TABLE(,%i,8)                 addresses
    mov TABLE(,%i,8), %r; jmp *%r     addresses
    lea TABLE(%rip), %b; movslq (%b,%i,4), %r; add %b, %r; jmp *%r      distances
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

import numpy as np

from lbr2pgo.program.blocks._x86_branches import address_filter, find_branches
from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.program.blocks.idioms import Idioms, TableUses
from lbr2pgo.program.blocks.x86_operands import (
    ADD,
    LEA,
    MOV_LOAD,
    MOVSXD,
    Instruction,
    Memory,
    OperandReader,
)
from lbr2pgo.program.blocks.x86_switches import condition, switch_of
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.distinct import among
from lbr2pgo.support.threads import made_of_each

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
    return code.passing(_comes_back(code))


def _split_locks(code: Disassembly) -> Disassembly:
    """Make each `lock` prefix a row of its own."""
    is_locked = (code.byte(0) == _LOCK) & (code.size > 1)
    if not is_locked.any():
        return code
    rows = np.repeat(np.arange(len(code)), 1 + is_locked)
    behind = np.flatnonzero(is_locked) + np.arange(1, is_locked.sum() + 1)
    is_rest = np.zeros(len(rows), np.bool_)
    is_rest[behind] = True
    size, kind = code.size[rows] - is_rest, code.kind[rows]
    size[behind - 1] = 1
    kind[behind] = Kind.OTHER
    return replace(
        code,
        address=code.address[rows] + is_rest,
        size=size,
        kind=kind,
        target=code.target[rows],
        has_target=code.has_target[rows] & ~is_rest,
        function=code.function[rows],
        offset=code.offset[rows] + is_rest,
    )


def _comes_back(code: Disassembly) -> Bools:
    """Instructions that leave the fall-through but end no block in BOLT."""
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


def branches_to(pieces: Iterable[tuple[U8, int]], targets: ImageAddresses) -> ImageAddresses:
    """Sources of what looks, at any byte of some code, like a direct branch to a target.

    Pieces of code have addresses; targets ascend.
    """
    wanted = address_filter(targets)

    def found(piece: tuple[U8, int]) -> ImageAddresses:
        (code, address), rows = piece, np.empty((_BRANCHES_AT_ONCE, 2), np.uint64)
        sources, at = [np.empty(0, np.uint64)], 0
        while at + 1 < len(code):
            at, count = find_branches(code, at, address, wanted, rows)
            source, target = rows[:count].T
            sources.append(source[among(target, targets)])
        return np.concatenate(sources)

    return np.concatenate([np.empty(0, np.uint64), *made_of_each(found, pieces)])


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
        self._code = code
        self._reader = OperandReader()
        self._known: dict[int, Instruction] = {}
        self._left = _ALL_SEARCHES

    def table_of(self, row: int) -> tuple[int, bool] | None:
        """Address of the table that a jump uses, and whether it holds distances."""
        jump = self._instruction(row)
        if isinstance(jump.other, Memory):
            return _address_table(jump.other)
        if jump.other is None:
            return None
        for at, setter in self._setters(row, {jump.other}):
            if setter.opcode == MOV_LOAD and isinstance(setter.other, Memory):
                return _address_table(setter.other)
            if not _is_add(setter) or setter.register == setter.other:
                return None
            table = self._distance_table(at, {setter.register, setter.other})
            return None if table is None else (table, True)
        return None

    def _distance_table(self, row: int, registers: Set[object]) -> int | None:
        """Address that `lea` sets in one register where `movslq` sets the other from it."""
        base = None
        for at, setter in self._setters(row, registers):
            if base is None:
                base = _base_of_indexed_movslq(setter)
                if base is None or {base, setter.register} != registers:
                    return None
            elif base in setter.written:
                return self._address_taken(at, setter)
        return None

    def _address_taken(self, row: int, setter: Instruction) -> int | None:
        """Address that a `lea` relative to the next instruction takes, None for another one."""
        memory = setter.other
        if setter.opcode != LEA or not isinstance(memory, Memory):
            return None
        if not memory.is_relative or memory.has_segment:
            return None
        following = int(self._code.address[row]) + int(self._code.size[row])
        return (following + memory.displacement) & _MASK

    def _setters(self, row: int, registers: Set[object]) -> Iterator[tuple[int, Instruction]]:
        """Instructions before a row, in the same function, that set any of the registers."""
        function = self._code.function[row]
        for at in range(row - 1, max(-1, row - 1 - _LONGEST_SEARCH), -1):
            self._left -= 1
            if self._left < 0 or self._code.function[at] != function:
                return
            instruction = self._instruction(at)
            if registers & instruction.written:
                yield at, instruction

    def _instruction(self, row: int) -> Instruction:
        if row not in self._known:
            self._known[row] = self._reader.read(self._code.code(row))
        return self._known[row]


def _address_table(memory: Memory) -> tuple[int, bool] | None:
    """Table of addresses that an operand `TABLE(,%i,8)` means."""
    has_more = memory.base is not None or memory.is_relative or memory.has_segment
    if has_more or memory.index is None or memory.scale != 8 or memory.displacement <= 0:
        return None
    return memory.displacement, False


def _is_add(instruction: Instruction) -> bool:
    """An `add` of two 64-bit registers."""
    return instruction.opcode == ADD and instruction.is_wide and isinstance(instruction.other, int)


def _base_of_indexed_movslq(instruction: Instruction) -> int | None:
    """`%b` of a `movslq (%b,%i,4), %r64`, None for another instruction."""
    memory = instruction.other
    if instruction.opcode != MOVSXD or not instruction.is_wide or not isinstance(memory, Memory):
        return None
    is_indexed = memory.index is not None and memory.scale == 4
    return None if not is_indexed or memory.displacement or memory.has_segment else memory.base


X86_64 = Idioms(
    normalized=normalized,
    taken_addresses=rip_relative_leas,
    jump_tables=jump_tables,
    switch=switch_of,
    condition=condition,
    unsupported=uses_short_loop,
    padding=_PADDING,
    branches_to=branches_to,
)
