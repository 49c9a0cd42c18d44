"""AArch64 instructions: four bytes each, control flow by bit pattern.

Every aligned word is taken for an instruction: one that no disassembler knows yet must not break
the fall-through. Encodings as in the Arm ARM (DDI 0487), C4.1.69 "Branches, Exception Generating
and System instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.architecture import Architecture, ControlFlow, MachineCode, Relocations
from lbr2pgo.program.code.bit_patterns import (
    WORD,
    Pattern,
    are_any,
    flow_of,
    kinds_of,
    words_at,
)
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.arrays import I64, U8, U32, Bools

if TYPE_CHECKING:
    import capstone

# Arm ARM, C6.2: ADRP, LDR (immediate), BR, NOP
_WORD = Struct("<I")
_ADRP_X16, _ADRP_MASK = 0x90000010, 0x9F00001F
_LDR_X17_X16, _LDR_MASK = 0xF9400211, 0xFFC003FF
_BR_X17, _NOP = 0xD61F0220, 0xD503201F


def _distance(bits: int, shift: int = 0) -> Callable[[U32], I64]:
    """Signed distance in instructions, a field of so many bits from `shift` on; in bytes."""
    left = 64 - bits

    def distance(word: U32) -> I64:
        field = (word >> np.uint32(shift)).astype(np.int64) << left
        return field >> (left - 2)

    return distance


_PATTERNS = (
    Pattern(0xFC00_0000, 0x1400_0000, Kind.JUMP, _distance(26)),  # b
    Pattern(0xFC00_0000, 0x9400_0000, Kind.CALL, _distance(26)),  # bl
    Pattern(0xFF00_0000, 0x5400_0000, Kind.COND, _distance(19, 5)),  # b.cond, bc.cond
    Pattern(0xFF00_000E, 0x5400_000E, Kind.JUMP, _distance(19, 5)),  # b.al, b.nv: always
    Pattern(0x7E00_0000, 0x3400_0000, Kind.COND, _distance(19, 5)),  # cbz, cbnz
    Pattern(0x7E00_0000, 0x3600_0000, Kind.COND, _distance(14, 5)),  # tbz, tbnz
    Pattern(
        0x7E00_0000, 0x7400_0000, Kind.COND, _distance(9, 5)
    ),  # cb<cc>, cbb…, cbh… (FEAT_CMPBR)
    Pattern(0xFEE0_0000, 0xD600_0000, Kind.INDIRECT_JUMP),  # br, braa…
    Pattern(0xFEE0_0000, 0xD620_0000, Kind.INDIRECT_CALL),  # blr, blraa…
    Pattern(0xFFE0_0000, 0xD640_0000, Kind.RET),  # ret, retaa…
    Pattern(0xFFC0_0000, 0xD680_0000, Kind.RET),  # eret, eretaa…, drps
    Pattern(0xFFC0_0000, 0x5500_0000, Kind.RET),  # retaasppc, retabsppc
    Pattern(0xFFE0_0000, 0xD400_0000, Kind.SYSCALL),  # svc, hvc, smc
    Pattern(0xFFE0_0000, 0xD420_0000, Kind.TRAP),  # brk
    Pattern(0xFFE0_0000, 0xD440_0000, Kind.TRAP),  # hlt
    Pattern(0xFFE0_0000, 0xD4A0_0000, Kind.TRAP),  # dcps1, dcps2, dcps3
    Pattern(0xFFFF_0000, 0x0000_0000, Kind.TRAP),  # udf
)

_SLOW = (
    (0x7FE0_F800, 0x1AC0_0800),  # udiv, sdiv
    (0xFF20_FC00, 0x1E20_1800),  # fdiv of scalars, vectors, and vectors of halves
    (0xBFA0_FC00, 0x2E20_FC00),
    (0xBFE0_FC00, 0x2E40_3C00),
    (0xFF3F_FC00, 0x1E21_C000),  # fsqrt of the same
    (0xBFBF_FC00, 0x2EA1_F800),
    (0xBFFF_FC00, 0x2EF9_F800),
    (0x3F00_0000, 0x0800_0000),  # exclusive and ordered loads and stores, compare and swap
    (0x3B20_0C00, 0x3820_0000),  # atomic operations on memory
    (0xFFFF_F01F, 0xD503_301F),  # barriers
)
"""Masks and values, as in C4.1 of the Arm ARM; which ones take long is said by the Arm Neoverse N2
Software Optimization Guide, section 3."""


def sweep(data: U8, bounds: list[int]) -> tuple[I64, U8]:
    """Offsets and sizes of the instructions in each piece of `data` between two bounds."""
    words = [np.arange(start, end - WORD + 1, WORD) for start, end in pairwise(bounds)]
    offset = np.concatenate([np.empty(0, np.int64), *words])
    return offset, np.full(len(offset), WORD, np.uint8)


def control_flow(code: MachineCode) -> ControlFlow:
    """Kinds and targets, from the instructions' words."""
    return flow_of(code, *kinds_of(words_at(code), _PATTERNS))


def are_slow(code: MachineCode) -> Bools:
    """Which instructions divide, take roots, or order accesses to memory."""
    return are_any(words_at(code), _SLOW)


def disassembler() -> capstone.Cs:
    """Writes what objdump does."""
    import capstone

    return capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)


def unknown(code: bytes) -> str:
    """What objdump writes for what is no instruction."""
    return f".inst 0x{int.from_bytes(code, 'little'):08x}"


def plt_slots(code: bytes, address: int, _: int) -> Iterator[tuple[int, int]]:
    """An entry is `adrp x16; ldr x17, [x16, …]; add x16; br x17`, perhaps with `bti` first."""
    start, page = address, 0
    for at, (word,) in enumerate(_WORD.iter_unpack(code[: len(code) // WORD * WORD])):
        here = address + WORD * at
        if word == _NOP:
            start = here + WORD if start == here else start
        elif word & _ADRP_MASK == _ADRP_X16:
            distance = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
            page = (here & ~0xFFF) + ((distance ^ 1 << 20) - (1 << 20) << 12)
        elif word & _LDR_MASK == _LDR_X17_X16:
            yield start, page + 8 * (word >> 10 & 0xFFF)
        elif word == _BR_X17:
            start = here + WORD


AARCH64 = Architecture(
    name="aarch64",
    elf_machine=183,
    uname=("aarch64", "arm64"),
    sweep=sweep,
    control_flow=control_flow,
    are_slow=are_slow,
    disassembler=disassembler,
    unknown=unknown,
    plt_slots=plt_slots,
    # AAELF64: R_AARCH64_RELATIVE, _IRELATIVE; _ABS64, _ABS32, _PREL64, _PREL32
    relocations=Relocations(relative=1027, irelative=1032, references=(257, 258, 260, 261)),
    frame_pointer=29,
    instruction_size=4,
    # GCC goes on to find the frame by sp behind this; Arm ARM, C6.2: ADD (immediate) of x29 and sp
    makes_frame=(0xFF8003FF, 0x910003FD),
    records_behind_calls=True,  # `counting.system_calls`
    mapping_symbols=(b"$x\0", b"$x.", b"$d\0", b"$d."),
)
