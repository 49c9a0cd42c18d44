"""Functions that never ran, which a compiler may make for size: a part of the symbol list.

Not those that functions with samples lead to in two calls. Listed, they have less inlined into
them, so they become small enough to be inlined where they are called, and code that ran would
change; and if other inputs than the recorded ones run anything new, they run these.

Source: LLVM 22, llvm/lib/Transforms/IPO/SampleProfile.cpp (`ProfileAccurateForSymsInList`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.profiles.llvm.sample_names import original_name
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import placed_array
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import distinct

_CALLS = 2
_LINKAGE = "@plt"


def cold_symbols(names: frozenset[str], flow: Flow, program: Program) -> frozenset[str]:
    """Those of a program's functions that no code that ran leads to, as above, by direct calls."""
    return names.difference(_names(program.regions, _reached(flow, program)))


def _reached(flow: Flow, program: Program) -> I64:
    """Numbers of the regions that ran, and of those that they lead to."""
    regions = program.regions
    reached = new = distinct(regions.containing(flow.instructions.address))
    for _ in range(_CALLS):
        code = program.instructions_once(regions.start[new])
        new = np.setdiff1d(_called(code, program), reached)
        reached = np.concatenate((reached, new))
    return reached


def _called(code: InstructionTable, program: Program) -> I64:
    """Regions that branches lead to; a library calls its own functions by its linkage table."""
    regions = program.regions
    called = distinct(regions.containing(code.target[code.has_target]))
    called = called[called >= 0]
    is_entry = regions.is_stub[called]
    names = (regions.label(row).removesuffix(_LINKAGE) for row in called[is_entry].tolist())
    behind = regions.containing(placed_array(filter(None, map(program.address_of, names))))
    return np.concatenate((called[~is_entry], behind[behind >= 0]))


def _names(regions: Functions, rows: I64) -> Iterator[str]:
    for row in rows.tolist():
        yield from map(original_name, regions.aliases(row))
