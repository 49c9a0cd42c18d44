"""System calls, whose records may name the instruction behind them.

Arm's BRBE records for an exception where the program goes on after it, the preferred return
address. SVC, HVC and SMC have been executed by then, so that this is the instruction behind them
(Arm ARM, Branch Record Buffer Extension, and "preferred exception return address"; Linux:
drivers/perf/arm_brbe.c, BRBINFx_EL1_TYPE_CALL, which perf calls SYSCALL).

>>> from lbr2pgo.model.branch_stacks import BRANCH_TYPES, TYPE_SHIFT, from_lists
>>> svc = BRANCH_TYPES.index("SYSCALL") << TYPE_SHIFT
>>> batch = from_lists([[(0x1004, 0, svc), (0x1010, 0x1000, 2), (0, 0x1000, svc)]])
>>> [hex(address) for address in at_their_instructions(batch).from_.tolist()]
['0x1000', '0x1010', '0x0']

Nor does such a record say how it was predicted: the field is 0 for exceptions, which Linux hands on
as a branch that was predicted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.model.branch_stacks import (
    BRANCH_TYPES,
    MISPREDICTED,
    PREDICTED,
    BranchStacks,
    type_of,
)
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.program.code import registry
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import SourceInfo

_SYSCALL = np.uint64(BRANCH_TYPES.index("SYSCALL"))
_INSTRUCTION = np.uint64(4)


def are_recorded_behind(info: SourceInfo, layout: ImageLayout) -> bool:
    """Whether the recorder names the instruction behind a system call; the software LBR doesn't."""
    is_simulated = info.details.get("cpuid") == SIMULATED_CPU
    return registry.named(layout.machine).records_behind_calls and not is_simulated


def at_their_instructions(batch: BranchStacks) -> BranchStacks:
    """The batch with each system call at the instruction that made it."""
    rows = np.flatnonzero((type_of(batch.flags) == _SYSCALL) & (batch.from_ != 0))
    if not len(rows):
        return batch
    entries = batch.entries.copy()
    entries[rows, 0] -= _INSTRUCTION
    entries[rows, 2] &= ~np.uint64(MISPREDICTED | PREDICTED)
    return replace(batch, entries=entries)
