"""Attribute values: sizes and decoding of every DW_FORM, and what indexed forms stand for.

A form that is not known here has no known size, so nothing behind it in its unit can be read:
that is an answer of its own (`UNKNOWN`), told apart from damage.
Source: DWARF 5, 7.5.6; LLVM: BinaryFormat/Dwarf.def for the vendor forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.native.dwarf_bytes import Int, after_string, fixed, sleb, uleb
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.support.arrays import Bytes

VARIABLE, UNKNOWN = -1, -2

ADDR, BLOCK2, BLOCK4, DATA2, DATA4, DATA8, STRING = 0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08
BLOCK, BLOCK1, DATA1, FLAG, SDATA, STRP, UDATA = 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F
REF_ADDR, REF1, REF2, REF4, REF8, REF_UDATA = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
INDIRECT, SEC_OFFSET, EXPRLOC, FLAG_PRESENT = 0x16, 0x17, 0x18, 0x19
STRX, ADDRX, REF_SUP4, STRP_SUP, DATA16, LINE_STRP = 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F
REF_SIG8, IMPLICIT_CONST, LOCLISTX, RNGLISTX, REF_SUP8 = 0x20, 0x21, 0x22, 0x23, 0x24
STRX1, STRX2, STRX3, STRX4 = 0x25, 0x26, 0x27, 0x28
ADDRX1, ADDRX2, ADDRX3, ADDRX4 = 0x29, 0x2A, 0x2B, 0x2C
GNU_ADDR_INDEX, GNU_STR_INDEX, GNU_REF_ALT, GNU_STRP_ALT = 0x1F01, 0x1F02, 0x1F20, 0x1F21
LLVM_ADDRX_OFFSET = 0x2001

# Sizes in the table below that depend on the unit.
_OFFSET, _ADDRESS, _REFERENCE = -3, -4, -5


def _size_table() -> npt.NDArray[np.int8]:
    """(0x2d,) i8: size of each standard form, or one of the codes above."""
    table = np.full(ADDRX4 + 1, UNKNOWN, np.int8)
    by_size = {
        0: (FLAG_PRESENT, IMPLICIT_CONST),
        1: (DATA1, FLAG, REF1, STRX1, ADDRX1),
        2: (DATA2, REF2, STRX2, ADDRX2),
        3: (STRX3, ADDRX3),
        4: (DATA4, REF4, REF_SUP4, STRX4, ADDRX4),
        8: (DATA8, REF8, REF_SIG8, REF_SUP8),
        16: (DATA16,),
        _OFFSET: (STRP, SEC_OFFSET, STRP_SUP, LINE_STRP),
        _ADDRESS: (ADDR,),
        _REFERENCE: (REF_ADDR,),
        VARIABLE: (BLOCK, BLOCK1, BLOCK2, BLOCK4, EXPRLOC, STRING, SDATA, UDATA, REF_UDATA,
                   INDIRECT, STRX, ADDRX, LOCLISTX, RNGLISTX),
    }  # fmt: skip
    for size, forms in by_size.items():
        table[list(forms)] = size
    return table


_SIZES = _size_table()


@compiled_leaf
def form_size(form: Int, version: Int, address_size: Int, offset_size: Int) -> Any:
    """Bytes that a form takes: a size, `VARIABLE`, or `UNKNOWN`."""
    if form in (GNU_REF_ALT, GNU_STRP_ALT):
        return offset_size
    if form in (GNU_ADDR_INDEX, GNU_STR_INDEX, LLVM_ADDRX_OFFSET):
        return VARIABLE
    if form < 0 or form >= len(_SIZES):
        return UNKNOWN
    size = np.int64(_SIZES[form])
    if size == _ADDRESS or (size == _REFERENCE and version <= 2):
        return address_size
    if size in (_OFFSET, _REFERENCE):
        return offset_size
    return size


@compiled_leaf
def _block_end(data: Bytes, position: Int, end: Int, form: Int) -> Any:
    """Where the contents of a block start and end: (start, end), end -1 if it passes the unit."""
    if form == BLOCK1:
        length, position = fixed(data, position, end, 1)
    elif form == BLOCK2:
        length, position = fixed(data, position, end, 2)
    elif form == BLOCK4:
        length, position = fixed(data, position, end, 4)
    else:
        length, position = uleb(data, position, end)
    if position < 0 or length > np.uint64(end - position):
        return position, -1
    return position, position + np.int64(length)


@compiled_leaf
def _read_variable(data: Bytes, position: Int, end: Int, form: Int) -> Any:
    """A value of no fixed size: (u64, next position)."""
    if form == SDATA:
        return sleb(data, position, end)
    if form == STRING:
        return np.uint64(position), after_string(data, position, end)
    if form in (BLOCK, BLOCK1, BLOCK2, BLOCK4, EXPRLOC):
        start, behind = _block_end(data, position, end, form)
        return np.uint64(max(start, 0)), behind
    value, position = uleb(data, position, end)
    if form == LLVM_ADDRX_OFFSET:
        offset, position = fixed(data, position, end, 4)
        value = (value << np.uint64(32)) | offset
    return value, position


@compiled_leaf
def read_form(
    data: Bytes,
    position: Int,
    end: Int,
    form: Any,
    version: Int,
    address_size: Int,
    offset_size: Int,
) -> Any:
    """One value: (form, u64, next position); the form differs from the given one if indirect.

    Blocks, strings and 16-byte data give the position of their contents. The position is -1
    where the value passes the end, `UNKNOWN` where the form is not known.
    """
    while form == INDIRECT:
        inner, position = uleb(data, position, end)
        if position < 0 or inner > 0xFFFF:
            return form, np.uint64(0), -1
        form = np.int64(inner)
    size = form_size(form, version, address_size, offset_size)
    if size == UNKNOWN:
        return form, np.uint64(0), UNKNOWN
    if size == VARIABLE:
        value, position = _read_variable(data, position, end, form)
        return form, value, position
    if size > 8:
        behind = position + size if position + size <= end else -1
        return form, np.uint64(position), behind
    value, position = fixed(data, position, end, size)
    return form, value, position


@compiled_leaf
def is_address_index(form: Int) -> Any:
    """Whether a value is an index into .debug_addr."""
    return form in (ADDRX, GNU_ADDR_INDEX) or ADDRX1 <= form <= ADDRX4


@compiled_leaf
def pooled_address(addr: Bytes, index: Any, base: Int, address_size: Int) -> Any:
    """Entry of .debug_addr: (found, u64)."""
    if base < 0 or index >= np.uint64(len(addr)):
        return False, np.uint64(0)
    start = base + np.int64(index) * address_size
    value, behind = fixed(addr, start, len(addr), address_size)
    return behind >= 0, value


@compiled_leaf
def address_of(addr: Bytes, form: Int, value: Any, base: Int, address_size: Int) -> Any:
    """The address that an attribute gives: (found, u64); not found if it is no address."""
    if form == ADDR:
        return True, value
    if form == LLVM_ADDRX_OFFSET:
        found, start = pooled_address(addr, value >> np.uint64(32), base, address_size)
        return found, start + (value & np.uint64(0xFFFFFFFF))
    if is_address_index(form):
        return pooled_address(addr, value, base, address_size)
    return False, np.uint64(0)


@compiled_leaf
def is_constant(form: Int) -> Any:
    """Whether LLVM takes the value as an unsigned constant (LLVM: DWARFFormValue.cpp)."""
    return form in (DATA1, DATA2, DATA4, DATA8, UDATA, IMPLICIT_CONST, FLAG, FLAG_PRESENT)
