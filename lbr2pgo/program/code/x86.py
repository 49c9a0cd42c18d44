"""x86-64 instructions: lengths by capstone, control flow by opcode.

Opcodes as in the Intel SDM, volume 2, appendix A.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import capstone
import capstone.x86
import numpy as np

from lbr2pgo.program.code.instructions import Code, Flow, Kind
from lbr2pgo.program.code.x86_length import vector_length, without_rex2
from lbr2pgo.support.arrays import I16, I64, U8, U32, U64, Bools
from lbr2pgo.support.threads import in_order, threads

_FIELDS = {"id": "<u4", "address": "<u8", "size": "<u2"}
_ROW = np.dtype(
    {
        "names": list(_FIELDS),
        "formats": list(_FIELDS.values()),
        "offsets": [getattr(capstone._cs_insn, name).offset for name in _FIELDS],
        "itemsize": ctypes.sizeof(capstone._cs_insn),
    }
)
"""The fields of capstone's C struct that matter here. Its Python API builds an object for
every instruction, which takes six times as long."""

_WINDOW = 1 << 14
_WINDOW_IN_DATA = 64
"""Bytes looked at in one go: capstone reads a row of prefixes to its end, however long."""
_LONGEST = 15
_WORTH_SHARING = 1 << 18
"""Bytes that take longer to disassemble than a thread to start."""

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


def _table(control: dict[Kind, tuple[int, ...]]) -> U8:
    table = np.zeros(256, np.uint8)
    for kind, opcodes in control.items():
        table[list(opcodes)] = kind
    return table


_KIND, _KIND_0F = _table(_CONTROL), _table(_CONTROL_0F)
_KIND_FF = np.array(_GROUP_5, np.uint8)
_IS_PREFIX = np.isin(np.arange(256), _PREFIXES)


def sweep(data: U8, bounds: list[int]) -> tuple[I64, U8]:
    """Offsets and sizes of the instructions in each piece of `data` between two bounds."""
    parts = _parts(bounds)
    if len(parts) == 1:
        signed = _sizes(data, bounds)
    else:
        workers = [partial(_sizes, data)] * len(parts)
        signed = np.concatenate([*in_order(((part,) for part in parts), workers)])
    size = np.abs(signed)
    offset = bounds[0] + np.cumsum(size, dtype=np.int64) - size
    return offset[signed > 0], size[signed > 0].astype(np.uint8)


def _parts(bounds: list[int]) -> list[list[int]]:
    """The bounds of about as many bytes for each thread; of all where there are few."""
    first, size = bounds[0], bounds[-1] - bounds[0]
    count = threads() if size > _WORTH_SHARING else 1
    cuts = [bisect_left(bounds, first + size * i // count) for i in range(1, count)]
    edges = [0, *cuts, len(bounds) - 1]
    return [bounds[a : b + 1] for a, b in pairwise(edges)]


def _sizes(data: U8, bounds: list[int]) -> I16:
    """Sizes of what stands between the bounds, negative where it is no instruction."""
    disassembler = _Disassembler(data)
    found = [np.empty(0, np.int16)]
    for start, end in pairwise(bounds):
        while start < end:
            found.append(disassembler.next_sizes(start, end))
            start += int(np.abs(found[-1]).sum())
    return np.concatenate(found)


def flow(code: Code) -> Flow:
    """Kinds and targets, from the instructions' bytes."""
    at = _opcode_offset(code)
    kind = _kinds(code, at)
    absolute = np.flatnonzero((code.data[at] == _JMPABS) & (code.data[at - 2] == _REX2))
    absolute = absolute[at[absolute] - code.offset[absolute] >= 2]
    kind[absolute] = Kind.JUMP
    has_target = np.isin(kind, (Kind.COND, Kind.JUMP, Kind.CALL))
    target = _relative_targets(code, has_target, at)
    target[absolute] = _numbers(code, at[absolute] + 1, 8).view(np.uint64)
    return Flow(kind, target, has_target)


def writer() -> Callable[[bytes, int], str]:
    """A function that writes one instruction in AT&T syntax, as objdump does."""
    handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    handle.syntax = capstone.CS_OPT_SYNTAX_ATT

    def write(code: bytes, address: int) -> str:
        for _, _, mnemonic, operands in handle.disasm_lite(code, address, 1):
            return f"{mnemonic} {operands}".rstrip()
        return "(bad)"

    return write


class _Disassembler:
    """capstone, which one thread can use at a time, over some bytes."""

    def __init__(self, data: U8) -> None:
        self._data = data
        self._code = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

    @cached_property
    def _code_in_data(self) -> Any:
        handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        handle.skipdata = True
        return handle

    def next_sizes(self, start: int, end: int) -> I16:
        """Sizes of what comes next, at least one; negative where it is no instruction.

        What capstone does not know, or misreads, goes by its length, if that is plain to see,
        because a gap would break the straight line; otherwise it is data, and the next code is
        looked for.
        """
        size, number = _disassemble(self._code, self._data, start, end, _WINDOW)
        misread = np.flatnonzero(number == capstone.x86.X86_INS_UD1)  # without its ModRM byte
        size = size[: misread[0]] if len(misread) else size
        if len(size):
            return size
        code = bytes(self._data[start : min(end, start + _LONGEST)])
        length = vector_length(code) or self._rex2_length(code)
        if length:
            return np.array([length], np.int16)
        size, number = _disassemble(self._code_in_data, self._data, start, end, _WINDOW_IN_DATA)
        return np.where(number == 0, -size, size)

    def _rex2_length(self, code: bytes) -> int:
        twin = without_rex2(code)
        if twin is None:
            return 0
        size, _ = _disassemble(self._code, np.frombuffer(twin, np.uint8), 0, len(twin), 1)
        return int(size[0]) + len(code) - len(twin) if len(size) else 0


def _disassemble(handle: Any, data: U8, start: int, end: int, window: int) -> tuple[I16, U32]:
    """Size and capstone's number of each instruction that starts in the window."""
    found = ctypes.POINTER(capstone._cs_insn)()
    code = ctypes.cast(data.ctypes.data + start, ctypes.c_char_p)
    length = min(end - start, window + _LONGEST)
    n = capstone._cs.cs_disasm(handle.csh, code, length, 0, 0, ctypes.byref(found))
    if not n:
        return np.empty(0, np.int16), np.empty(0, np.uint32)
    try:
        memory = (ctypes.c_char * (n * _ROW.itemsize)).from_address(
            ctypes.cast(found, ctypes.c_void_p).value
        )
        rows = np.frombuffer(memory, _ROW)
        rows = rows[: np.searchsorted(rows["address"], window)]
        return rows["size"].astype(np.int16), rows["id"].copy()
    finally:
        capstone._cs.cs_free(found, n)


def _opcode_offset(code: Code) -> I64:
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


def _kinds(code: Code, at: I64) -> U8:
    opcode, second = code.data[at], code.data[at + 1]
    kind = _KIND[opcode]
    two_bytes = opcode == _ESCAPE
    kind[two_bytes] = _KIND_0F[second[two_bytes]]
    indirect = opcode == 0xFF
    kind[indirect] = _KIND_FF[(second[indirect] >> 3) & 7]
    kind[_is_xbegin(code, at)] = Kind.COND
    kind[_is_system_return(code, at)] = Kind.RET
    return kind


def _is_xbegin(code: Code, at: I64) -> Bools:
    found: Bools = (code.data[at] == 0xC7) & (code.data[at + 1] == 0xF8)
    return found


def _is_system_return(code: Code, at: I64) -> Bools:
    """Which are uiret (F3 0F 01 EC), eretu (F3 0F 01 CA) or erets (F2 0F 01 CA)."""
    data, prefix = code.data, code.data[at - 1]
    group_7 = (data[at] == _ESCAPE) & (data[at + 1] == 0x01) & (at > code.offset)
    from_user = (prefix == 0xF3) & np.isin(data[at + 2], (0xCA, 0xEC))
    from_supervisor = (prefix == 0xF2) & (data[at + 2] == 0xCA)
    found: Bools = group_7 & (from_user | from_supervisor)
    return found


def _relative_targets(code: Code, has_target: Bools, at: I64) -> U64:
    """End of each instruction plus its displacement, whose width is what the opcode leaves."""
    target = np.zeros(len(code.address), np.uint64)
    displacement_at = at + 1 + ((code.data[at] == _ESCAPE) | _is_xbegin(code, at))
    width = code.offset + code.size - displacement_at
    for n in (1, 2, 4):
        rows = np.flatnonzero(has_target & (width == n))
        displacement = _numbers(code, displacement_at[rows], n)
        target[rows] = code.address[rows] + code.size[rows] + displacement.view(np.uint64)
    return target


def _numbers(code: Code, at: I64, width: int) -> I64:
    """Signed little-endian numbers at these places."""
    columns = at[:, np.newaxis] + np.arange(width)
    numbers: I64 = code.data[columns].view(f"<i{width}")[:, 0].astype(np.int64)
    return numbers
