"""Operands of x86-64 instructions that jump tables are used with, and the registers that are set.

Registers are numbers from 0 (`rax`) to 15, whatever part of them is meant. Opcodes as in the Intel
SDM, volume 2, chapter 2 and appendix A.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cached_property
from typing import Any

from lbr2pgo.support.dataclass import dataclass

ADD, MOVSXD, MOV_LOAD, LEA, GROUP_5 = 0x01, 0x63, 0x8B, 0x8D, 0xFF
UNUSUAL = -1
"""Stands for the opcode of every other instruction."""

_SEGMENTS = b"\x26\x2e\x36\x3e\x64\x65"
_PREFIXES = _SEGMENTS + b"\x66\xf0\xf2\xf3"
_ESCAPE, _NOP = 0x0F, 0x90
_RSP = 4
_BY_OPCODE = range(0xB0, 0xC0)
_STACK = range(0x50, 0x60)
_SETCC = range(0xF90, 0xFA0)
_WITH_NUMBER = (0x80, 0x81, 0x83)
_SHIFTS = (0xC0, 0xC1, *range(0xD0, 0xD4))


@dataclass(frozen=True, slots=True)
class Memory:
    """An operand in memory."""

    base: int | None
    index: int | None
    scale: int
    displacement: int
    is_relative: bool
    """To the next instruction, without registers."""
    has_segment: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the first bytes of an instruction tell."""

    opcode: int
    """From 0xF00 on for those behind the escape 0F."""
    is_wide: bool
    """Its operands have 64 bits, or are addresses."""
    register: int | None
    """That its ModRM byte names beside the other operand; None if that was not looked at."""
    other: int | Memory | None
    written: frozenset[int]


class _Sets(Enum):
    """Which register an instruction sets."""

    NONE = auto()
    REGISTER = auto()
    OTHER = auto()
    RAX = auto()
    BY_OPCODE = auto()
    PUSH = auto()
    POP = auto()


_MODRM = (_Sets.REGISTER, _Sets.OTHER)
_OPERANDS = (*_MODRM, _Sets.BY_OPCODE)

_ARITHMETIC = {
    first + form: sets
    for first in range(0x00, 0x38, 8)
    for form, sets in enumerate(2 * (_Sets.OTHER,) + 2 * (_Sets.REGISTER,) + 2 * (_Sets.RAX,))
}
_NO_OPERANDS = (
    *range(0x38, 0x3E), *range(0x70, 0x80), 0x84, 0x85, _NOP, 0xA8, 0xA9, 0xE9, 0xEB,
    0xF1F, *range(0xF80, 0xF90),
)  # fmt: skip
_REGISTER = (
    MOVSXD, 0x69, 0x6B, 0x8A, MOV_LOAD, LEA,
    *range(0xF40, 0xF50), 0xFAF, 0xFB6, 0xFB7, 0xFBE, 0xFBF,
)  # fmt: skip
_SETS: dict[int, _Sets] = {
    **_ARITHMETIC,
    **dict.fromkeys(_NO_OPERANDS, _Sets.NONE),
    **dict.fromkeys(_REGISTER, _Sets.REGISTER),
    **dict.fromkeys((0x88, 0x89, *_SETCC), _Sets.OTHER),
    **dict.fromkeys(_BY_OPCODE, _Sets.BY_OPCODE),
    **dict.fromkeys((*_STACK[:8], 0x68, 0x6A, 0xE8), _Sets.PUSH),
    **dict.fromkeys(_STACK[8:], _Sets.POP),
    0x98: _Sets.RAX,
}
_TEST_NOT_NEG = {0: _Sets.NONE, 2: _Sets.OTHER, 3: _Sets.OTHER}
_BY_REGISTER = {
    **{opcode: {**dict.fromkeys(range(7), _Sets.OTHER), 7: _Sets.NONE} for opcode in _WITH_NUMBER},
    **{opcode: dict.fromkeys((0, 1, 2, 3, 4, 5, 7), _Sets.OTHER) for opcode in _SHIFTS},
    0xFAE: dict.fromkeys(range(2, 8), _Sets.NONE),  # 0 and 1 read fs and gs, or save all
    0xC6: {0: _Sets.OTHER},
    0xC7: {0: _Sets.OTHER},
    0xF6: _TEST_NOT_NEG,
    0xF7: _TEST_NOT_NEG,
    0xFE: {0: _Sets.OTHER, 1: _Sets.OTHER},
    GROUP_5: {0: _Sets.OTHER, 1: _Sets.OTHER, 2: _Sets.PUSH, 4: _Sets.NONE, 6: _Sets.PUSH},
}
"""By the field of the ModRM byte that is a part of the opcode."""


class OperandReader:
    """Reads instructions: the usual ones by their first bytes, as capstone takes long to load."""

    def read(self, code: bytes) -> Instruction:
        """The instruction that some bytes are; of an unusual one only what it sets is told."""
        try:
            usual = read_usual(code)
        except IndexError:  # the bytes end inside of the instruction: they are data among code
            usual = None
        return usual or Instruction(UNUSUAL, False, None, None, self._written(code))

    def _written(self, code: bytes) -> frozenset[int]:
        for instruction in self._disassembler.disasm(code, 0, 1):
            _, written = instruction.regs_access()
            numbers = (_NUMBERS.get(self._disassembler.reg_name(number)) for number in written)
            return frozenset(number for number in numbers if number is not None)
        return frozenset()

    @cached_property
    def _disassembler(self) -> Any:
        import capstone

        handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        handle.detail = True
        return handle


def _names(number: int) -> tuple[str, ...]:
    """Those of a register and its parts."""
    if number >= 8:
        return tuple(f"r{number}{part}" for part in ("", "d", "w", "b"))
    name = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")[number]
    bytes_ = (f"{name[0]}l", f"{name[0]}h") if number < 4 else (f"{name}l",)
    return (f"r{name}", f"e{name}", name, *bytes_)


_NUMBERS = {name: number for number in range(16) for name in _names(number)}


def read_usual(code: bytes) -> Instruction | None:
    """The instruction that some bytes are, None for one that is not among the usual ones."""
    at = len(code) - len(code.lstrip(_PREFIXES))
    has_segment = any(byte in _SEGMENTS for byte in code[:at])
    rex = code[at] if code[at] & 0xF0 == 0x40 else 0
    at += bool(rex)
    opcode = code[at]
    if opcode == _ESCAPE:
        at += 1
        opcode = _ESCAPE << 8 | code[at]
    behind = code[at + 1 :]
    sets = _SETS.get(opcode) or _BY_REGISTER.get(opcode, {}).get(_field(behind))
    if sets is None or (opcode == _NOP and rex):  # which is `xchg`
        return None
    register, other = None, None
    if opcode in _BY_REGISTER or sets in _MODRM:
        register = _field(behind) | (rex & 4) << 1
        other = _other(behind, rex, has_segment=has_segment)
    written = _written(sets, opcode & 7 | (rex & 1) << 3, register, other)
    if sets in _OPERANDS and not rex and _is_byte(opcode):
        written = frozenset(number & 3 for number in written)  # 4 to 7 are ah, ch, dh and bh
    return Instruction(opcode, bool(rex & 8), register, other, written)


def _field(behind: bytes) -> int:
    """The middle of a ModRM byte; 0 where there is none."""
    return behind[0] >> 3 & 7 if behind else 0


def _other(behind: bytes, rex: int, *, has_segment: bool) -> int | Memory:
    """The operand that a ModRM byte with its SIB byte and displacement names."""
    mode, register = behind[0] >> 6, behind[0] & 7
    if mode == 3:
        return register | (rex & 1) << 3
    at, index, scale = 1, None, 1
    if register == 4:
        at, register, scale = 2, behind[1] & 7, 1 << (behind[1] >> 6)
        number = behind[1] >> 3 & 7 | (rex & 2) << 2
        index = None if number == _RSP else number
    has_base = mode != 0 or register != 5
    width = (0 if has_base else 4, 1, 4)[mode]
    return Memory(
        base=register | (rex & 1) << 3 if has_base else None,
        index=index,
        scale=scale,
        displacement=int.from_bytes(behind[at : at + width], "little", signed=True),
        is_relative=not has_base and at == 1,
        has_segment=has_segment,
    )


def _written(
    sets: _Sets, by_opcode: int, register: int | None, other: int | Memory | None
) -> frozenset[int]:
    numbers = {
        _Sets.NONE: (),
        _Sets.RAX: (0,),
        _Sets.PUSH: (_RSP,),
        _Sets.POP: (_RSP, by_opcode),
        _Sets.BY_OPCODE: (by_opcode,),
        _Sets.REGISTER: (register,),
        _Sets.OTHER: (other,),
    }[sets]
    return frozenset(number for number in numbers if isinstance(number, int))


def _is_byte(opcode: int) -> bool:
    """Whether the register that is set is one of 8 bits."""
    if opcode in _BY_OPCODE:
        return opcode < _BY_OPCODE[8]
    if opcode > _ESCAPE << 8:
        return opcode in _SETCC
    return opcode % 2 == 0
