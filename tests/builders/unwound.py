"""Samples with call stacks, unwound without a reader of files."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from builders.hybrid import Hybrid, batch_of

from lbr2pgo.contexts.unwind import ContextTable
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.model.context_counts import ContextCounts
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.prologues import in_prologue_or_epilogue
from lbr2pgo.replay.replay import ReplayOptions


def unwound(
    program: Program, samples: Iterable[Hybrid], *, as_llvm: bool = False,
    spaces: AddressSpaces | None = None,
) -> ContextCounts:  # fmt: skip
    """Counts of a program that ran where it was linked, or as one process saw it."""
    batch = batch_of(list(samples))
    spaces = spaces or AddressSpaces.fixed(program.image.layout)
    numbers = spaces.spaces_of(batch.pid, batch.time)
    if as_llvm:
        image, _ = spaces.to_image(0, batch.ip)
        dropped = in_prologue_or_epilogue(image, program, DebugInfo.open(program.image))
        numbers = np.where(dropped, -1, numbers)
    table = ContextTable(program, ReplayOptions(as_llvm=as_llvm))
    kind = StackKind.AS_LLVM if as_llvm else StackKind.CONSECUTIVE
    table.source(spaces).add(batch, numbers, np.full(len(batch), kind, np.uint8))
    return table.counts()
