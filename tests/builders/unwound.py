"""Samples with call stacks, unwound without a reader of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from builders.compat import llvm_profgen_if
from builders.hybrid import Hybrid, batch_of

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.collector import Samples
from lbr2pgo.evidence.contexts.unwind import ContextTable
from lbr2pgo.evidence.sample_runs import KnownRuns
from lbr2pgo.model.context_counts import ContextCounts
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.prologues import in_prologue_or_epilogue
from lbr2pgo.replay.replay import ReplayOptions

Record = tuple[tuple[int, ...], str, int, int]
"""Callers from the outermost on, `run` or `branch`, and its two addresses; 1 is outside."""


def unwound(
    program: Program, samples: Iterable[Hybrid], *, as_llvm: bool = False,
    spaces: AddressSpaces | None = None,
    indirect_targets: Mapping[int, Sequence[int]] | None = None,
) -> ContextCounts:  # fmt: skip
    """Counts of a program that ran where it was linked, or as one process saw it."""
    batch = batch_of(list(samples))
    spaces = spaces or AddressSpaces.fixed(program.image.layout)
    numbers = spaces.spaces_of(batch.pid, batch.time)
    if as_llvm:
        image, _ = spaces.to_image(0, batch.ip)
        dropped = in_prologue_or_epilogue(image, program, DebugInfo.open(program.image))
        numbers = np.where(dropped, -1, numbers)
    table = ContextTable(program, ReplayOptions(compat=llvm_profgen_if(as_llvm)), indirect_targets)
    kind = StackKind.AS_LLVM if as_llvm else StackKind.CONSECUTIVE
    kinds = np.full(len(batch), kind, np.uint8)
    code = InstructionTable.empty()
    table.source(spaces).add(Samples(batch, numbers, kinds, KnownRuns(spaces, code)))
    return table.counts()


def records(counts: ContextCounts) -> Counter[Record]:
    paths: list[tuple[int, ...]] = [()]
    callers, runs, branches = counts.callers, counts.runs, counts.branches
    for parent, call in zip(callers.parent[1:].tolist(), callers.call[1:].tolist(), strict=True):
        paths.append((*paths[parent], call))
    found: Counter[Record] = Counter()
    for node, start, end, count in zip(
        *(c.tolist() for c in (runs.node, runs.start, runs.end, runs.count)), strict=True
    ):
        found[paths[node], "run", start, end] += count
    source = np.where(branches.has_source, branches.from_, np.uint64(1))
    for node, start, end, count in zip(
        *(c.tolist() for c in (branches.node, source, branches.to, branches.count)), strict=True
    ):
        found[paths[node], "branch", start, end] += count
    return found
