"""Lengths of x86-64 instructions: capstone's, and what is newer than capstone.

Nearly everything that Intel and AMD added in twenty years lives in opcode maps whose instructions
all have the same form: a ModRM byte, and in some an immediate. So the length of an unknown one is
known (Intel SDM vol. 2, 2.1 to 2.3 and 2.7; AVX512-FP16 for EVEX maps 5 and 6). APX puts the
old integer instructions into EVEX map 4, and before them a REX2 prefix in place of REX (Intel APX
Architecture Specification, 3.1.1 and 3.1.2); map 7 holds MSR accesses by a number of 32 bits.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import capstone
import capstone.x86
import numpy as np

from lbr2pgo.support.arrays import I16, I64, U8, U32
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
LONGEST = 15
_WORTH_SHARING = 1 << 18
"""Bytes that take longer to disassemble than a thread to start."""

_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))
_REX = range(0x40, 0x50)
_REX2 = 0xD5
_MAP_0F, _MAP_0F3A, _MAP_APX, _MAP_MSR = 1, 3, 4, 7
_VEX_MAPS, _EVEX_MAPS = (1, 2, 3, 7), (1, 2, 3, 4, 5, 6, 7)
_IMMEDIATE_BYTE = {
    _MAP_0F: (0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6),
    _MAP_0F3A: range(0x100),
    _MAP_APX: (0x24, 0x2C, 0x6B, 0x80, 0x83, 0xC0, 0xC1),
}
_IMMEDIATE_WORD = (0x69, 0x81)
_GROUP_3 = (0xF6, 0xF7)


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
        code = bytes(self._data[start : min(end, start + LONGEST)])
        length = _vector_length(code) or self._rex2_length(code)
        if length:
            return np.array([length], np.int16)
        size, number = _disassemble(self._code_in_data, self._data, start, end, _WINDOW_IN_DATA)
        return np.where(number == 0, -size, size)

    def _rex2_length(self, code: bytes) -> int:
        twin = _without_rex2(code)
        if twin is None:
            return 0
        size, _ = _disassemble(self._code, np.frombuffer(twin, np.uint8), 0, len(twin), 1)
        return int(size[0]) + len(code) - len(twin) if len(size) else 0


def _disassemble(handle: Any, data: U8, start: int, end: int, window: int) -> tuple[I16, U32]:
    """Size and capstone's number of each instruction that starts in the window."""
    found = ctypes.POINTER(capstone._cs_insn)()
    code = ctypes.cast(data.ctypes.data + start, ctypes.c_char_p)
    length = min(end - start, window + LONGEST)
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


def _vector_length(code: bytes) -> int:
    """Bytes of the instruction that `code` starts with, 0 if it is of no such map or is cut."""
    try:
        at, opcode_map = _opcode(code)
        if opcode_map == 0:
            return 0
        length = at + 1 + _operand_size(code[at + 1 :]) + _immediate_size(code, at, opcode_map)
    except IndexError:
        return 0
    return length if length <= min(len(code), LONGEST) else 0


def _without_rex2(code: bytes) -> bytes | None:
    """The instruction with the REX prefix, and escape, that do what its REX2 prefix does.

    Registers come out wrong, lengths right. None if there is no REX2 prefix.
    """
    at = _behind_prefixes(code)
    if code[at : at + 1] != bytes([_REX2]) or len(code) < at + 2:
        return None
    payload = code[at + 1]
    rex = bytes([_REX.start | payload & 0xF])
    return code[:at] + rex + (b"\x0f" if payload & 0x80 else b"") + code[at + 2 :]


def _behind_prefixes(code: bytes) -> int:
    return len(code) - len(code.lstrip(bytes(_PREFIXES)))


def _immediate_size(code: bytes, at: int, opcode_map: int) -> int:
    opcode = code[at]
    if opcode in _IMMEDIATE_BYTE.get(opcode_map, ()):
        return 1
    if opcode_map == _MAP_MSR:
        return 4
    is_test = opcode in _GROUP_3 and code[at + 1] & 0x30 == 0
    if opcode_map != _MAP_APX or not (is_test or opcode in _IMMEDIATE_WORD):
        return 0
    if opcode == _GROUP_3[0]:
        return 1
    return 2 if code[at - 2] & 3 == 1 else 4  # EVEX.pp says 66: 16-bit operands


def _opcode(code: bytes) -> tuple[int, int]:
    """Where the opcode stands and its map, (0, 0) for the maps that capstone knows whole."""
    at = _behind_prefixes(code)
    if code[at] in _REX:
        at += 1
    lead = code[at]
    if lead == 0xC5:
        return at + 2, _MAP_0F
    if lead == 0xC4:
        return _if_known(at + 3, code[at + 1] & 0x1F, _VEX_MAPS)
    if lead == 0x62:
        return _if_known(at + 4, code[at + 1] & 7, _EVEX_MAPS)
    if lead != 0x0F:
        return 0, 0
    escape = {0x38: 2, 0x3A: _MAP_0F3A}.get(code[at + 1])
    return (at + 2, escape) if escape else (at + 1, _MAP_0F)


def _if_known(at: int, opcode_map: int, maps: tuple[int, ...]) -> tuple[int, int]:
    return (at, opcode_map) if opcode_map in maps else (0, 0)


def _operand_size(code: bytes) -> int:
    """Bytes of a ModRM byte with its SIB byte and displacement."""
    mode, register = code[0] >> 6, code[0] & 7
    if mode == 3:
        return 1
    has_sib = register == 4
    base = code[1] & 7 if has_sib else register
    displacement = (4 if base == 5 else 0, 1, 4)[mode]
    return 1 + has_sib + displacement
