"""x86-64 instructions: control flow by opcode.

Opcodes as in the Intel SDM, volume 2, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.architecture import Architecture, ControlFlow, MachineCode, Relocations
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.code.x86_lengths import sweep
from lbr2pgo.program.code.x86_slow import take_long
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, Bools

if TYPE_CHECKING:
    import capstone

_LONGEST = 15
_PREFIXES = (0x26, 0x2E, 0x36, 0x3E, *range(0x40, 0x50), 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3)
_ESCAPE = 0x0F
_REX2, _REX2_MAP_0F, _JMPABS = 0xD5, 0x80, 0xA1
"""APX's prefix of two bytes; the second says which map. Nothing of map 0F controls flow with it,
and opcode A1 is a jump to the 64-bit address that follows (Intel APX specification, 3.1.1)."""
_CONTROL = {
    Kind.COND: (*range(0x70, 0x80), *range(0xE0, 0xE4)),
    Kind.JUMP: (0xE9, 0xEB),
    Kind.CALL: (0xE8,),
    Kind.RET: (0xC2, 0xC3, 0xCA, 0xCB, 0xCF),
    Kind.SYSCALL: (0xCD,),
    Kind.TRAP: (0xCC, 0xF1, 0xF4),
}
_CONTROL_0F = {
    Kind.COND: tuple(range(0x80, 0x90)),
    Kind.RET: (0x07, 0x35, 0xAA),
    Kind.SYSCALL: (0x05, 0x34),
    Kind.TRAP: (0x0B, 0xB9, 0xFF),
}
_GROUP_5 = (
    Kind.OTHER, Kind.OTHER, Kind.INDIRECT_CALL, Kind.INDIRECT_CALL,
    Kind.INDIRECT_JUMP, Kind.INDIRECT_JUMP, Kind.OTHER, Kind.OTHER,
)  # fmt: skip
"""Opcode FF by the reg field of its ModRM byte."""

_JUMP_THROUGH_MEMORY, _ENDBR64 = b"\xff\x25", b"\xf3\x0f\x1e\xfa"


def _table(control: dict[Kind, tuple[int, ...]]) -> U8:
    table = np.zeros(256, np.uint8)
    for kind, opcodes in control.items():
        table[list(opcodes)] = kind
    return table


_KIND, _KIND_0F = _table(_CONTROL), _table(_CONTROL_0F)
_KIND_FF = np.array(_GROUP_5, np.uint8)
_IS_PREFIX = np.isin(np.arange(256), _PREFIXES)


def control_flow(code: MachineCode) -> ControlFlow:
    """Kinds and targets, from the instructions' bytes."""
    at = _opcode_offset(code)
    kind = _kinds(code, at)
    absolute = np.flatnonzero((code.data[at] == _JMPABS) & (code.data[at - 2] == _REX2))
    absolute = absolute[at[absolute] - code.offset[absolute] >= 2]
    kind[absolute] = Kind.JUMP
    has_target = np.isin(kind, (Kind.COND, Kind.JUMP, Kind.CALL))
    target = _relative_targets(code, has_target, at)
    target[absolute] = _numbers(code, at[absolute] + 1, 8).view(np.uint64)
    return ControlFlow(kind, target, has_target)


def are_slow(code: MachineCode) -> Bools:
    """Which instructions take tens of cycles."""
    return take_long(code, _opcode_offset(code))


def disassembler() -> capstone.Cs:
    """Writes AT&T syntax, as objdump does."""
    import capstone

    handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    handle.syntax = capstone.CS_OPT_SYNTAX_ATT
    return handle


def unknown(_: bytes) -> str:
    """What objdump writes for what is no instruction."""
    return "(bad)"


def plt_slots(code: bytes, address: int, entry_size: int) -> Iterator[tuple[int, int]]:
    """An entry jumps through its slot, perhaps behind `endbr64` or `bnd`."""
    size = 2 * entry_size if entry_size == 8 and code.startswith(_ENDBR64) else entry_size
    for at in range(0, len(code) - size + 1, size):
        jump = code.find(_JUMP_THROUGH_MEMORY, at, at + size - 4)
        if jump >= 0:
            displacement = int.from_bytes(code[jump + 2 : jump + 6], "little", signed=True)
            yield address + at, address + jump + 6 + displacement


def _opcode_offset(code: MachineCode) -> I64:
    """Where in the data each instruction's opcode stands, behind its prefixes."""
    at = code.offset.copy()
    rows = np.arange(len(at))
    for _ in range(_LONGEST - 1):
        rows = rows[_IS_PREFIX[code.data[at[rows]]]]
        if not len(rows):
            break
        at[rows] += 1
    rex2 = (code.data[at] == _REX2) & (code.data[at + 1] < _REX2_MAP_0F)
    at[rex2] += 2
    return at


def _kinds(code: MachineCode, at: I64) -> U8:
    opcode, second = code.data[at], code.data[at + 1]
    kind = _KIND[opcode]
    two_bytes = opcode == _ESCAPE
    kind[two_bytes] = _KIND_0F[second[two_bytes]]
    indirect = opcode == 0xFF
    kind[indirect] = _KIND_FF[(second[indirect] >> 3) & 7]
    kind[_is_xbegin(code, at)] = Kind.COND
    kind[_is_system_return(code, at)] = Kind.RET
    return kind


def _is_xbegin(code: MachineCode, at: I64) -> Bools:
    found: Bools = (code.data[at] == 0xC7) & (code.data[at + 1] == 0xF8)
    return found


def _is_system_return(code: MachineCode, at: I64) -> Bools:
    """Which are uiret (F3 0F 01 EC), eretu (F3 0F 01 CA) or erets (F2 0F 01 CA)."""
    data, prefix = code.data, code.data[at - 1]
    group_7 = (data[at] == _ESCAPE) & (data[at + 1] == 0x01) & (at > code.offset)
    from_user = (prefix == 0xF3) & np.isin(data[at + 2], (0xCA, 0xEC))
    from_supervisor = (prefix == 0xF2) & (data[at + 2] == 0xCA)
    found: Bools = group_7 & (from_user | from_supervisor)
    return found


def _relative_targets(code: MachineCode, has_target: Bools, at: I64) -> ImageAddresses:
    """End of each instruction plus its displacement, whose width is what the opcode leaves."""
    target = np.zeros(len(code.address), np.uint64)
    displacement_at = at + 1 + ((code.data[at] == _ESCAPE) | _is_xbegin(code, at))
    width = code.offset + code.size - displacement_at
    for n in (1, 2, 4):
        rows = np.flatnonzero(has_target & (width == n))
        displacement = _numbers(code, displacement_at[rows], n)
        target[rows] = code.address[rows] + code.size[rows] + displacement.view(np.uint64)
    return image_addresses(target)


def _numbers(code: MachineCode, at: I64, width: int) -> I64:
    """Signed little-endian numbers at these places."""
    columns = at[:, np.newaxis] + np.arange(width)
    numbers: I64 = code.data[columns].view(f"<i{width}")[:, 0].astype(np.int64)
    return numbers


X86_64 = Architecture(
    name="x86-64",
    elf_machine=62,
    uname=("x86_64", "amd64"),
    sweep=sweep,
    control_flow=control_flow,
    are_slow=are_slow,
    disassembler=disassembler,
    unknown=unknown,
    plt_slots=plt_slots,
    # psABI: R_X86_64_RELATIVE, _IRELATIVE; _64, _32, _32S; _PC32, _PLT32, _PC16, _PC8, _PC64
    relocations=Relocations(
        relative=8, irelative=37, references=(1, 10, 11), jump_tables=(2, 4, 13, 15, 24)
    ),
    frame_pointer=6,  # psABI, "DWARF Register Number Mapping": rbp
    repeats_newest=True,  # `model.quirks`: repeated newest entry
)
