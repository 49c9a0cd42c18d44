"""Addresses at which a frame is being made or left, as llvm-profgen guesses them.

llvm-profgen drops a whole sample if its call stack ends there, since a call stack may lack a frame
then, even when only the branch stack is used (LLVM: tools/llvm-profgen/PerfReader.cpp
extractCallstack, ProfiledBinary.h PrologEpilogTracker). Only `--compat llvm-profgen` follows it.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.symbols import STT_FUNC
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.distinct import distinct


def in_prologue_or_epilogue(
    addresses: PlacedAddresses, program: Program, debug: DebugInfo, *, by_probes: bool = True
) -> Bools:
    """Which placed addresses (n,) are where llvm-profgen expects an incomplete frame.

    That is at a function's first two instructions, at a return, and at the one before it.
    `by_probes` says that it looks at the program's pseudo probes, if there are any.
    """
    table = program.instructions_for(distinct(addresses))
    row = table.index_of(addresses)
    known = row >= 0
    starts = _function_starts(addresses, program, debug, by_probes=by_probes)
    is_start = np.isin(table.address, starts)
    is_return = table.kind == Kind.RET
    is_next = table.end[:-1] == table.address[1:]
    marked = is_start | is_return
    marked[1:] |= is_start[:-1] & is_next
    marked[:-1] |= is_return[1:] & is_next
    found: Bools = known.copy()
    found[known] = marked[row[known]]
    return found


def _function_starts(
    addresses: PlacedAddresses, program: Program, debug: DebugInfo, *, by_probes: bool
) -> PlacedAddresses:
    """Where functions start; where probes are looked at also those that only symbols know.

    LLVM 22: tools/llvm-profgen/ProfiledBinary.cpp, loadSymbolsFromSymtab.
    """
    described = debug.functions_for(distinct(addresses))
    if not (by_probes and program.probes.present):
        return described.range_start
    symbols = program.probes.symbols
    starts = symbols.start[(symbols.kind == STT_FUNC) & (symbols.size > 0)]
    outside = starts[described.containing(starts) < 0]
    found: PlacedAddresses = np.concatenate((described.range_start, outside))
    return found
