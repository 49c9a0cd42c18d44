"""Calls through pointers that an instruction before them loaded, as those of virtual methods are.

x86-64 calls through memory, where one instruction does both. Elsewhere, and for tail calls, the
pointer is in a register in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import PlacedAddresses, placed_array

if TYPE_CHECKING:
    import capstone

    from lbr2pgo.program.program import Program

_THROUGH_POINTERS = (Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP)
_LEAVING = (Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET, Kind.TRAP)


def calls_through(program: Program, loads: PlacedAddresses) -> PlacedAddresses:
    """(n,): the call, or tail call, that each instruction loads the target of; 0 where none is.

    One that takes the register which was loaded, before that is overwritten and before any branch;
    or the instruction itself.
    """
    code = program.instructions_once(loads)
    disassembler = program.image.architecture.disassembler()
    disassembler.detail = True
    rows = code.index_of(loads).tolist()
    return placed_array([_call(program.image, code, row, disassembler) for row in rows])


def _call(image: Image, code: InstructionTable, load: int, disassembler: capstone.Cs) -> int:
    if load < 0:
        return 0
    held: set[int] | None = None  # registers that have what was loaded; None: it is still to be
    past = int(np.searchsorted(code.run, code.run[load], side="right"))
    for row in range(load, past):
        address, kind = int(code.address[row]), int(code.kind[row])
        read, written = _registers(image.read(address, int(code.size[row])), disassembler)
        if kind in _THROUGH_POINTERS and (held is None or held & read):
            return address
        held = written if held is None else held - written
        if not held or kind in _LEAVING:
            break
    return 0


def _registers(data: bytes, disassembler: capstone.Cs) -> tuple[set[int], set[int]]:
    """Registers that an instruction reads, and those that it writes."""
    import capstone

    for instruction in disassembler.disasm(data, 0, 1):
        try:
            read, written = instruction.regs_access()
        except capstone.CsError:  # of RISC-V capstone 5 does not know
            named = [o.reg for o in instruction.operands if o.type == capstone.CS_OP_REG]
            return set(named), set(named[:1])
        return set(read), set(written)
    return set(), set()
