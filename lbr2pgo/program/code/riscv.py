"""RISC-V instructions (RV64GC): two or four bytes each, control flow by bit pattern.

As on AArch64, whatever has the form of an instruction is taken for one: vector code and vendors'
extensions keep the fall-through. Encodings as in the RISC-V Instruction Set Manual, volume I (base
and "C" extension, 1.5 "Base Instruction-Length Encoding"); RV64 has none of more than four bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from struct import unpack_from
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.architecture import Architecture, ControlFlow, MachineCode, Relocations
from lbr2pgo.program.code.bit_patterns import Pattern, are_any, flow_of, kinds_of, words_at
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.arrays import I64, U8, U32, Bools

if TYPE_CHECKING:
    import capstone

_PARCEL = 2
"""Bytes that instructions are multiples of, and aligned to."""
_IS_WIDE = 3
"""Both lowest bits of a parcel that begins four bytes."""

# Unprivileged ISA: AUIPC, JALR and LD; registers t1 and t3 as in the psABI's PLT entries
_AUIPC, _JALR = 0x17, 0x67
_AUIPC_T3, _AUIPC_MASK = 0xE17, 0xFFF
_LD_T3_T3, _LD_MASK = 0x000E_3E03, 0x000F_FFFF
_JALR_T1_T3 = 0x000E_0367


def _distance(bits: str) -> Callable[[U32], I64]:
    """Signed distance in bytes, by where its bits stand in a word, from the word's bit 31 down.

    `12|10:5` are bit 12 and bits 10 to 5, a number in brackets is so many bits of something else.
    """

    def distance(word: U32) -> I64:
        found = np.zeros(len(word), np.int64)
        at, highest = 32, 0
        for part in bits.split("|"):
            if part.startswith("("):
                at -= int(part.strip("()"))
                continue
            high, _, low = part.partition(":")
            width = int(high) - int(low or high) + 1
            at -= width
            field = (word >> np.uint32(at)).astype(np.int64) & ((1 << width) - 1)
            found |= field << int(low or high)
            highest = max(highest, int(high))
        left = 63 - highest
        return found << left >> left

    return distance


_BRANCH = _distance("12|10:5|(13)|4:1|11")
_JAL = _distance("20|10:1|11|19:12")
_C_JUMP = _distance("(19)|11|4|9:8|10|6|7|3:1|5")
_C_BRANCH = _distance("(19)|8|4:3|(3)|7:6|2:1|5")

# An `rd` or `rs1` of x1 or x5 is a link register: table "Return-address stack prediction hints".
_PATTERNS = (
    Pattern(0x0000_007F, 0x0000_0063, Kind.COND, _BRANCH),  # beq … bgeu
    Pattern(0x0000_007F, 0x0000_006F, Kind.JUMP, _JAL),  # jal
    Pattern(0x0000_0FFF, 0x0000_00EF, Kind.CALL, _JAL),  # jal ra; jal t0
    Pattern(0x0000_0FFF, 0x0000_02EF, Kind.CALL, _JAL),
    Pattern(0x0000_707F, 0x0000_0067, Kind.INDIRECT_JUMP),  # jalr
    Pattern(0x000F_F07F, 0x0000_8067, Kind.RET),  # jalr x…, ra; jalr x…, t0
    Pattern(0x000F_F07F, 0x0002_8067, Kind.RET),
    Pattern(0x0000_7FFF, 0x0000_00E7, Kind.INDIRECT_CALL),  # jalr ra, …; jalr t0, …
    Pattern(0x0000_7FFF, 0x0000_02E7, Kind.INDIRECT_CALL),
    Pattern(0xFFFF_FFFF, 0x0000_0073, Kind.SYSCALL),  # ecall
    Pattern(0xFFFF_FFFF, 0x0010_0073, Kind.TRAP),  # ebreak
    Pattern(0xFFFF_FFFF, 0x1020_0073, Kind.RET),  # sret, mret, mnret, dret
    Pattern(0xFFFF_FFFF, 0x3020_0073, Kind.RET),
    Pattern(0xFFFF_FFFF, 0x7020_0073, Kind.RET),
    Pattern(0xFFFF_FFFF, 0x7B20_0073, Kind.RET),
    Pattern(0xFFFF_FFFF, 0xC000_1073, Kind.TRAP),  # unimp, as assemblers write it
    Pattern(0x0000_FFFF, 0x0000_0000, Kind.TRAP),  # c.unimp
    Pattern(0x0000_E003, 0x0000_A001, Kind.JUMP, _C_JUMP),  # c.j
    Pattern(0x0000_C003, 0x0000_C001, Kind.COND, _C_BRANCH),  # c.beqz, c.bnez
    Pattern(0x0000_F07F, 0x0000_8002, Kind.INDIRECT_JUMP),  # c.jr
    Pattern(0x0000_FFFF, 0x0000_8082, Kind.RET),  # c.jr ra, c.jr t0
    Pattern(0x0000_FFFF, 0x0000_8282, Kind.RET),
    Pattern(0x0000_F07F, 0x0000_9002, Kind.INDIRECT_CALL),  # c.jalr
    Pattern(0x0000_FFFF, 0x0000_9002, Kind.TRAP),  # c.ebreak
)
_SLOW = (
    (0xFE00_4077, 0x0200_4033),  # div, rem, and those of words
    (0xF800_007F, 0x1800_0053),  # fdiv, fsqrt
    (0xF800_007F, 0x5800_0053),
    (0x0000_007F, 0x0000_002F),  # lr, sc and atomic operations
    (0x0000_007F, 0x0000_000F),  # fence, fence.i
)
"""Masks and values of what takes tens of cycles on cores in silicon (SiFive U74 Core Complex
Manual, 3.4 "Pipeline latency")."""


def sweep(data: U8, bounds: list[int]) -> tuple[I64, U8]:
    """Offsets and sizes of the instructions in each piece of `data` between two bounds."""
    found = [_sweep_piece(data[start:end]) for start, end in pairwise(bounds)]
    starts = [np.empty(0, np.int64)]
    starts += [start + offset for start, (offset, _) in zip(bounds, found, strict=False)]
    return np.concatenate(starts), np.concatenate([np.empty(0, np.uint8), *(s for _, s in found)])


def _sweep_piece(data: U8) -> tuple[I64, U8]:
    """Parcels that begin an instruction, in a piece of which the first one does.

    Behind a parcel that would begin two bytes one always does, whether that parcel is an
    instruction or ends one. So in a row of parcels that would begin four, every second one does.
    """
    wide = data[: len(data) // _PARCEL * _PARCEL : _PARCEL] & _IS_WIDE == _IS_WIDE
    number = np.arange(len(wide), dtype=np.int64)
    begins = np.ones(len(wide), np.bool_)
    begins[1:] = ~wide[:-1]
    parcel = np.flatnonzero((number - np.maximum.accumulate(number * begins)) % 2 == 0)
    size = np.where(wide[parcel], 4, 2).astype(np.uint8)
    whole = _PARCEL * parcel + size <= len(data)
    return _PARCEL * parcel[whole], size[whole]


def control_flow(code: MachineCode) -> ControlFlow:
    """Kinds and targets, from the instructions' words.

    A `jalr` behind an `auipc` of its register goes where both say: the form of calls and tail calls
    that the linker did not relax ("inferable jump" in the RISC-V Efficient Trace specification).
    """
    word = _words(code)
    kind, distance = kinds_of(word, _PATTERNS)
    far = _far_branches(code, word)
    kind[far] = np.where(kind[far] == Kind.INDIRECT_CALL, Kind.CALL, Kind.JUMP)
    distance[far] = _far_distance(code, word, far)
    return flow_of(code, kind, distance)


def _far_branches(code: MachineCode, word: U32) -> I64:
    """Rows of `jalr rd, (rs1)` right behind `auipc rs1`."""
    register = word >> 15 & 31
    return 1 + np.flatnonzero(
        (word[1:] & 0x707F == _JALR)
        & (word[:-1] & 0x7F == _AUIPC)
        & (word[:-1] >> 7 & 31 == register[1:])
        & (code.address[:-1] + code.size[:-1] == code.address[1:])
    )


def _far_distance(code: MachineCode, word: U32, row: I64) -> I64:
    """From the `jalr` to its target."""
    upper = (word[row - 1] & np.uint32(0xFFFF_F000)).view(np.int32).astype(np.int64)
    lower = (word[row].view(np.int32) >> 20).astype(np.int64)
    return upper + lower - code.size[row - 1]


def are_slow(code: MachineCode) -> Bools:
    """Which instructions divide, take roots, or order accesses to memory."""
    return are_any(_words(code), _SLOW)


def _words(code: MachineCode) -> U32:
    """Each instruction's bits; of those of two bytes, the upper half is 0."""
    word = words_at(code)
    return np.where(code.size == _PARCEL, word & np.uint32(0xFFFF), word)


def disassembler() -> capstone.Cs:
    """Writes what objdump does."""
    import capstone

    return capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)


def unknown(code: bytes) -> str:
    """What objdump writes for what is no instruction."""
    return f".insn {len(code)}, 0x{int.from_bytes(code, 'little'):0{2 * len(code)}x}"


def plt_slots(code: bytes, address: int, _: int) -> Iterator[tuple[int, int]]:
    """An entry is `auipc t3; ld t3, …(t3); jalr t1, t3`, perhaps with `lpad` first, and `nop`.

    RISC-V ELF psABI, "Program Linkage Table". The table's head loads by another register.
    """
    for at in range(0, len(code) - 11, 4):
        upper, load, jump = unpack_from("<iII", code, at)
        if (
            upper & _AUIPC_MASK == _AUIPC_T3
            and load & _LD_MASK == _LD_T3_T3
            and jump == _JALR_T1_T3
        ):
            lower = (load >> 20 ^ 0x800) - 0x800
            yield address + at // 16 * 16, address + at + (upper & ~0xFFF) + lower


RISCV64 = Architecture(
    name="riscv64",
    elf_machine=243,
    uname=("riscv64",),
    sweep=sweep,
    control_flow=control_flow,
    are_slow=are_slow,
    disassembler=disassembler,
    unknown=unknown,
    plt_slots=plt_slots,
    # psABI: R_RISCV_RELATIVE, _IRELATIVE; _64, _32, _32_PCREL; _ADD32, _ADD64
    relocations=Relocations(relative=3, irelative=58, references=(1, 2, 57), jump_tables=(35, 36)),
    frame_pointer=8,  # psABI, "DWARF": s0
    is_relaxed=True,  # psABI, "Linker Relaxation"
    # LLVM 22: clang/lib/Driver/ToolChains/Clang.cpp, -fbasic-block-address-map
    why_no_block_maps="Clang writes none for riscv64: lay functions out by --symbol-order.",
    # psABI, "Mapping Symbol"; fake labels that debug information is laid out by (LLVM, GNU as)
    mapping_symbols=(b"$x", b"$d\0", b"$d.", b".L"),
)
