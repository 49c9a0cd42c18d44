"""Lengths of x86-64 instructions: by their first bytes, by capstone where those leave a doubt."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import numpy as np

from lbr2pgo.program.code._x86_lengths import known_lengths
from lbr2pgo.support.arrays import I16, I64, U8, U32

_AT_ONCE = 1 << 16
_WINDOW_IN_DATA = 64
"""Bytes that capstone looks at in one go: it reads a row of prefixes to its end, however long."""
_LONGEST = 15
_PREFIXES = b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3"
_REX2 = b"\xd5"


def sweep(data: U8, bounds: list[int]) -> tuple[I64, U8]:
    """Offsets and sizes of the instructions in each piece of `data` between two bounds."""
    signed = _signed_sizes(data, bounds)
    size = np.abs(signed)
    offset = bounds[0] + np.cumsum(size, dtype=np.int64) - size
    return offset[signed > 0], size[signed > 0].astype(np.uint8)


def _signed_sizes(data: U8, bounds: list[int]) -> I16:
    """Sizes of what stands between the bounds, negative where it is no instruction."""
    capstone, edges = _Capstone(data), np.array(bounds, np.int64)
    sizes = np.empty(_AT_ONCE, np.int16)
    found = [np.empty(0, np.int16)]
    piece, at = 0, bounds[0]
    while piece + 1 < len(bounds):
        piece, at, count = known_lengths(data, edges, piece, at, sizes)
        found.append(sizes[:count].copy())
        if piece + 1 < len(bounds) and count < len(sizes):
            found.append(capstone.next_sizes(at, bounds[piece + 1]))
            at += int(np.abs(found[-1]).sum())
    return np.concatenate(found)


class _Capstone:
    """The disassembler, over some bytes. It takes long to load."""

    def __init__(self, data: U8) -> None:
        self._data = data

    def next_sizes(self, start: int, end: int) -> I16:
        """Sizes of what comes next, at least one; negative where it is no instruction.

        In data, which capstone can't read, the next code is looked for.
        """
        code = self._data[start : min(end, start + _LONGEST)]
        size, _ = self._disassemble(self._code, code, 1)
        if len(size):
            return size
        if length := self._rex2_length(code.tobytes()):
            return np.array([length], np.int16)
        size, number = self._disassemble(self._code_in_data, self._data[start:end], _WINDOW_IN_DATA)
        return np.where(number == 0, -size, size)

    def _rex2_length(self, code: bytes) -> int:
        twin = _without_rex2(code)
        if twin is None:
            return 0
        size, _ = self._disassemble(self._code, np.frombuffer(twin, np.uint8), 1)
        return int(size[0]) + len(code) - len(twin) if len(size) else 0

    @cached_property
    def _code(self) -> Any:
        import capstone

        return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

    @cached_property
    def _code_in_data(self) -> Any:
        import capstone

        handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        handle.skipdata = True
        return handle

    @cached_property
    def _row(self) -> np.dtype[np.void]:
        """The fields of capstone's C struct that matter here.

        Its Python API builds an object for every instruction, which takes six times as long.
        """
        from capstone import _cs_insn

        fields = {"id": "<u4", "address": "<u8", "size": "<u2"}
        return np.dtype(
            {
                "names": list(fields),
                "formats": list(fields.values()),
                "offsets": [getattr(_cs_insn, name).offset for name in fields],
                "itemsize": ctypes.sizeof(_cs_insn),
            }
        )

    def _disassemble(self, handle: Any, data: U8, window: int) -> tuple[I16, U32]:
        """Size and capstone's number of each instruction that starts in the window."""
        from capstone import _cs, _cs_insn

        found = ctypes.POINTER(_cs_insn)()
        code = ctypes.cast(data.ctypes.data, ctypes.c_char_p)
        length = min(len(data), window + _LONGEST)
        n = _cs.cs_disasm(handle.csh, code, length, 0, 0, ctypes.byref(found))
        if not n:
            return np.empty(0, np.int16), np.empty(0, np.uint32)
        try:
            memory = (ctypes.c_char * (n * self._row.itemsize)).from_address(
                ctypes.cast(found, ctypes.c_void_p).value
            )
            rows = np.frombuffer(memory, self._row)
            rows = rows[: np.searchsorted(rows["address"], window)]
            return rows["size"].astype(np.int16), rows["id"].copy()
        finally:
            _cs.cs_free(found, n)


def _without_rex2(code: bytes) -> bytes | None:
    """The instruction with the REX prefix, and escape, that do what its REX2 prefix does.

    Registers come out wrong, lengths right (Intel APX Architecture Specification, 3.1.1). None if
    there is no REX2 prefix.
    """
    at = len(code) - len(code.lstrip(_PREFIXES))
    if code[at : at + 1] != _REX2 or len(code) < at + 2:
        return None
    payload = code[at + 1]
    escape = b"\x0f" if payload & 0x80 else b""
    return code[:at] + bytes([0x40 | payload & 0xF]) + escape + code[at + 2 :]
