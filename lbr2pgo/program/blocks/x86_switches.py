"""What x86-64 code compares: the values of switches, and what conditional branches are taken for.

A compiler lowers a switch to a subtraction of its lowest value, a comparison with how many there
are, and a jump through a table::

    lea -65(%rdi), %eax; cmp $25, %eax; ja DEFAULT; movslq (%rcx,%rax,4), %rax; …

or to comparisons with its values. Opcodes and conditions as in the Intel SDM, volume 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.program.blocks.idioms import Switch
from lbr2pgo.program.blocks.x86_operands import (
    LEA,
    MOV_LOAD,
    MOVSXD,
    Instruction,
    Memory,
    OperandReader,
)
from lbr2pgo.program.code.instructions import Kind

_FARTHEST = 64
"""Instructions looked at before a jump."""
_WITH_BYTE, _WITH_NUMBERS = (0x80, 0x83), (0x80, 0x81, 0x83)
_ADD, _SUB, _CMP = 0, 5, 7  # fields of the ModRM byte of _WITH_NUMBERS
_OF_RAX = {0x05: _ADD, 0x2D: _SUB, 0x3D: _CMP, 0x3C: _CMP}
_INC_DEC = {0xFE: (1, -1), 0xFF: (1, -1)}
_EXTENDING = (MOVSXD, 0xFB6, 0xFB7, 0xFBE, 0xFBF)
_STORE, _CMP_RAX_BYTE = 0x89, 0x3C
_BYTES = (0x80, _CMP_RAX_BYTE)
_TEST = (0x84, 0x85)
_FRAME = (4, 5)  # rsp and rbp
_ABOVE, _NOT_BELOW = 0x7, 0x3
_CONDITIONS = {
    0x2: "< {} unsigned", 0x3: ">= {} unsigned", 0x4: "== {}", 0x5: "!= {}",
    0x6: "<= {} unsigned", 0x7: "> {} unsigned",
    0xC: "< {}", 0xD: ">= {}", 0xE: "<= {}", 0xF: "> {}",
}  # fmt: skip
"""By the low half of a branch's opcode."""
_SIGNS = {0x8: "< 0", 0x9: ">= 0"}


def switch_of(code: Disassembly, row: int) -> Switch:
    """The values of the jump table that an indirect jump uses; the first is 0 unless code tells."""
    follower = _Follower(code)
    found = follower.index_of(row)
    return Switch() if found is None else follower.switch(*found)


def condition(code: bytes, before: bytes) -> str | None:
    r"""For what a conditional branch is taken, by the instruction before it; None if not visible.

    >>> condition(bytes.fromhex("7405"), bytes.fromhex("83ff05")), condition(b"\x7f\0", b"\x90")
    ('== 5', None)
    """
    number = code[1] & 0xF if code[:1] == b"\x0f" else code[0] & 0xF
    is_jcc = code[0] & 0xF0 == 0x70 or (code[0] == 0x0F and code[1] & 0xF0 == 0x80)
    if not is_jcc or not before:
        return None
    instruction = OperandReader().read(before)
    if instruction.opcode in _TEST and _is_of_itself(before):
        return _SIGNS.get(number) or _told(number, 0, 64)
    for field in (_CMP, _SUB):
        compared = _arithmetic(instruction, before, field)
        if compared is not None:
            bits = 8 if instruction.opcode in _BYTES else 64 if instruction.is_wide else 32
            return _told(number, compared[1], bits)
    return None


def _is_of_itself(code: bytes) -> bool:
    """Whether both operands of a `test` are one register."""
    rex, modrm = code[-3] if len(code) > 2 else 0, code[-1]
    is_extended = rex & 0xF0 == 0x40 and (rex >> 2 & 1) != (rex & 1)
    return modrm >> 6 == 3 and modrm >> 3 & 7 == modrm & 7 and not is_extended


def _told(number: int, value: int, bits: int) -> str | None:
    words = _CONDITIONS.get(number)
    if words is None:
        return None
    return words.format(value % (1 << bits) if words.endswith("unsigned") else value)


def _arithmetic(
    instruction: Instruction, code: bytes, field: int
) -> tuple[int | Memory, int] | None:
    """Operand and number of an `add`, `sub` or `cmp` with a number."""
    opcode = instruction.opcode
    if _OF_RAX.get(opcode) == field:
        size = 1 if opcode == _CMP_RAX_BYTE else 4
        return 0, int.from_bytes(code[-size:], "little", signed=True)
    is_it = opcode in _WITH_NUMBERS and (instruction.register or 0) & 7 == field
    if not is_it or instruction.other is None:
        return None
    size = 1 if opcode in _WITH_BYTE else 4
    return instruction.other, int.from_bytes(code[-size:], "little", signed=True)


class _Follower:
    """Follows the index of a jump table back to what the program switches over."""

    def __init__(self, code: Disassembly) -> None:
        self._code, self._reader = code, OperandReader()

    def index_of(self, row: int) -> tuple[int, int] | None:
        """Row of the instruction that reads the table for a jump, and the register of the index."""
        for at, instruction, _ in self._backwards(row + 1):
            memory = instruction.other
            reads = instruction.opcode in (MOV_LOAD, MOVSXD) or at == row
            if reads and isinstance(memory, Memory) and memory.index is not None:
                return at, memory.index
        return None

    def switch(self, row: int, register: int) -> Switch:
        """The values whose index stands in a register at a row."""
        place: int | Memory = register
        count = default = None
        for at, instruction, text in self._backwards(row):
            if count is None and (compared := _compared(instruction, text, place)) is not None:
                count, default = self._guard(at, compared)
                continue
            moved = _moved(instruction, place)
            if moved is not None:
                place = moved
                continue
            added = _added(instruction, text, place)
            if added is not None:
                return Switch(-added, count, default)
            if place in instruction.written or _stores_to(instruction, place):
                break
        return Switch(0, count, default)

    def _guard(self, row: int, largest: int) -> tuple[int | None, int | None]:
        """How many values pass the branch behind a comparison, and where the others go."""
        after = row + 1
        if after >= len(self._code) or self._code.kind[after] != Kind.COND:
            return None, None
        text = self._code.code(after)
        number = (text[1] if text[0] == 0x0F else text[0]) & 0xF
        if number not in (_ABOVE, _NOT_BELOW) or largest < 0:
            return None, None
        return largest + (number == _ABOVE), int(self._code.target[after])

    def _backwards(self, row: int) -> Iterator[tuple[int, Instruction, bytes]]:
        """Instructions before a row that come to it straight on, but for branches taken."""
        code = self._code
        for at in range(row - 1, max(-1, row - 1 - _FARTHEST), -1):
            if at < row - 1 and code.kind[at] not in (Kind.OTHER, Kind.COND):
                return
            if code.function[at] != code.function[row - 1]:
                return
            text = code.code(at)
            yield at, self._reader.read(text), text


def _compared(instruction: Instruction, code: bytes, place: int | Memory) -> int | None:
    """What number a place is compared with.

    Code that is not optimised keeps the index in memory, and subtracts from a copy to compare.
    """
    found = _arithmetic(instruction, code, _CMP)
    if found is not None and found[0] == place:
        return found[1]
    copied = _arithmetic(instruction, code, _SUB) if isinstance(place, Memory) else None
    return None if copied is None else copied[1]


def _moved(instruction: Instruction, place: int | Memory) -> int | Memory | None:
    """Where the value of a place was before a move; None if the instruction is none of it."""
    register, other = instruction.register, instruction.other
    if instruction.opcode == _STORE and other == place:
        return register
    if instruction.opcode in (MOV_LOAD, *_EXTENDING) and register == place:
        is_slot = isinstance(other, Memory) and other.base in _FRAME and other.index is None
        return other if isinstance(other, int) or is_slot else None
    return None


def _added(instruction: Instruction, code: bytes, place: int | Memory) -> int | None:
    """What an instruction adds to a place; None for another one."""
    memory = instruction.other
    if instruction.opcode == LEA and instruction.register == place:
        simple = isinstance(memory, Memory) and memory.base is not None and memory.index is None
        return memory.displacement if simple and isinstance(memory, Memory) else None
    if instruction.opcode in _INC_DEC and memory == place:
        field = (instruction.register or 0) & 7
        return _INC_DEC[instruction.opcode][field] if field < 2 else None
    for field, sign in ((_ADD, 1), (_SUB, -1)):
        found = _arithmetic(instruction, code, field)
        if found is not None and found[0] == place:
            return sign * found[1]
    return None


def _stores_to(instruction: Instruction, place: int | Memory) -> bool:
    return isinstance(place, Memory) and instruction.other == place
