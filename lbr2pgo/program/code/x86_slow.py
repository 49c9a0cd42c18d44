"""x86-64 instructions that take tens of cycles, by opcode.

Divisions, roots, x87's functions, what locks or orders memory, pause, repeated strings, and what
asks the processor for its state (Intel 64 and IA-32 Architectures Optimization Reference Manual,
appendix "Instruction latency and throughput"). Loads are not among them: whether they wait, no
opcode tells.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.code.architecture import MachineCode
from lbr2pgo.support.arrays import I64, U8, Bools

_LOCK, _REPEATED = 0xF0, (0xF2, 0xF3)
_STRINGS_OR_PAUSE = (0x90, *range(0xA4, 0xA8), *range(0xAA, 0xB0))
_DIVISION = (6, 7)
_X87_DIVIDES, _X87_OTHER = (0xD8, 0xDA, 0xDC, 0xDE), 0xD9
_X87_FUNCTIONS = 0xF0
"""From this ModRM byte on: f2xm1 … fcos, fsqrt among them."""
_ALONE_0F = (0x31, 0x33, 0xA2)
"""rdtsc, rdpmc, cpuid."""
_RDTSCP, _FENCES = 0xF9, 0xE8
_MAP_0F, _ROOT_OR_DIVISION = 1, (0x51, 0x5E)
_VEX = {0xC5: (2, 0), 0xC4: (3, 0x1F), 0x62: (4, 0x07)}
"""First bytes of VEX and EVEX: how far behind it the opcode is, and the mask of its map in the
second byte, which the short one has not."""


def take_long(code: MachineCode, opcode_at: I64) -> Bools:
    """(n,): which they are, by their bytes and where in these each one's opcode stands."""
    first, second = code.data[opcode_at], code.data[opcode_at + 1]
    third = code.data[opcode_at + 2]
    has_lock, has_repeat = (_has_prefix(code, opcode_at, p) for p in ((_LOCK,), _REPEATED))
    found: Bools = (
        has_lock
        | (has_repeat & np.isin(first, _STRINGS_OR_PAUSE))
        | _are_plain(first, second)
        | ((first == 0x0F) & _are_escaped(second, third, has_repeat))
        | _are_vectors(code.data, opcode_at)
    )
    return found


def _has_prefix(code: MachineCode, opcode_at: I64, prefixes: tuple[int, ...]) -> Bools:
    found = np.zeros(len(opcode_at), np.bool_)
    for n in range(int((opcode_at - code.offset).max(initial=0))):
        at = code.offset + n
        found |= (at < opcode_at) & np.isin(code.data[np.minimum(at, opcode_at)], prefixes)
    return found


def _are_plain(opcode: U8, modrm: U8) -> Bools:
    """div, idiv, xchg with memory, and x87's."""
    field = modrm >> 3 & 7
    divides = np.isin(opcode, (0xF6, 0xF7, *_X87_DIVIDES)) & np.isin(field, _DIVISION)
    exchanges = np.isin(opcode, (0x86, 0x87)) & (modrm >> 6 != 3)
    found: Bools = divides | exchanges | ((opcode == _X87_OTHER) & (modrm >= _X87_FUNCTIONS))
    return found


def _are_escaped(opcode: U8, modrm: U8, has_repeat: Bools) -> Bools:
    """Behind 0F: cpuid and the like, fences, and SSE's divisions and roots."""
    asks = np.isin(opcode, _ALONE_0F) | ((opcode == 0x01) & (modrm == _RDTSCP))
    orders = (opcode == 0xAE) & (modrm >= _FENCES) & ~has_repeat
    found: Bools = asks | orders | np.isin(opcode, _ROOT_OR_DIVISION)
    return found


def _are_vectors(data: U8, at: I64) -> Bools:
    """Divisions and roots behind VEX and EVEX."""
    found = np.zeros(len(at), np.bool_)
    for byte, (distance, mask) in _VEX.items():
        is_map = (data[at + 1] & mask == _MAP_0F) if mask else np.True_
        found |= (data[at] == byte) & is_map & np.isin(data[at + distance], _ROOT_OR_DIVISION)
    return found
