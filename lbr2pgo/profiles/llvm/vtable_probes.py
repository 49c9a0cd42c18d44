"""Which pseudo probe stands for an instruction that loads from a virtual table.

Type counts are those of a *virtual call site*, by its location (LLVM 22: SampleProf.h,
FunctionSamples::VirtualCallsiteTypeCounts), which for probes is the number of the call's probe
without a discriminator (SampleProf.cpp, FunctionSamples::getCallSiteIdentifier). So it is the
probe of the call that the load serves. Other loads, of type information say, have the probe of
their block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.profiles.llvm.calls_by_lines import nodes_by_lines
from lbr2pgo.program.code.instructions import ENDS_LINE, InstructionTable, Kind
from lbr2pgo.program.pseudo_probes import ProbeKind, ProbeTable
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.intervals import last_at_or_below

if TYPE_CHECKING:
    from lbr2pgo.program.dwarf.debug_info import DebugInfo
    from lbr2pgo.program.program import Program


def probes_of_loads(
    table: ProbeTable,
    loads: PlacedAddresses,
    calls: PlacedAddresses,
    program: Program,
    debug: DebugInfo,
) -> I64:
    """(n,): the row of each load's probe in the table, -1 where there is none.

    `calls` are those of `calls_through`.
    """
    row = table.call_at(calls)
    if len(table) and (others := np.flatnonzero(row < 0)).size:
        row[others] = _blocks(table, loads[others], program.instructions_once(loads), debug)
    return row


def _blocks(
    table: ProbeTable, loads: PlacedAddresses, code: InstructionTable, debug: DebugInfo
) -> I64:
    """The last block's probe at or before each load (n,) that no branch stands behind.

    That of the inlined function which the load is of, where debug information tells; -1 for none.
    """
    found, place = debug.places(loads)
    node = nodes_by_lines(table, loads, found.scope[place], found.scopes)
    blocks = np.flatnonzero(table.kind == ProbeKind.BLOCK)
    row = np.full(len(loads), -1)
    for load, inline in enumerate(node.tolist()):
        known = blocks if inline < 0 else blocks[table.node[blocks] == inline]
        before = last_at_or_below(table.address[known], loads[load : load + 1])
        row[load] = np.append(known, -1)[before[0]]
    probed = np.append(table.address, np.uint64(0))[row]
    return np.where((row >= 0) & _is_straight(code, probed, loads), row, -1)


def _is_straight(code: InstructionTable, first: PlacedAddresses, last: PlacedAddresses) -> Bools:
    """(n,): whether no branch stands between two instructions each."""
    leaves = np.isin(code.kind, (Kind.COND, *ENDS_LINE))
    gaps = np.append(code.run, -1)
    left = np.append(np.cumsum(leaves) - leaves, -1)
    begin, end = code.index_of(first), code.index_of(last)
    found: Bools = (begin >= 0) & (left[begin] == left[end]) & (gaps[begin] == gaps[end])
    return found
