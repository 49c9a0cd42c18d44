"""From replayed recordings to `Evidence`: a second pass over the samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lbr2pgo.analyses.chains import plan_paths
from lbr2pgo.analyses.evidence import Evidence, Limits
from lbr2pgo.counting.count import CountingOptions, Reading
from lbr2pgo.evidence import call_stacks, cycle_counts, single_branches
from lbr2pgo.evidence import path_counts as chain_paths
from lbr2pgo.evidence.call_stacks import StackCounts, StackTable, is_call_stack
from lbr2pgo.evidence.cycle_counts import CycleCounts, CycleTable
from lbr2pgo.evidence.duplicates import CopyTable
from lbr2pgo.evidence.effective_samples import SpreadTable, spread
from lbr2pgo.evidence.path_counts import ChainPlan, PathCounts, PathTable
from lbr2pgo.evidence.sample_runs import RunReader
from lbr2pgo.evidence.single_branches import SingleBranches, SingleTable
from lbr2pgo.model.branch_counts import BranchCounts, merge
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, BranchStacks
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.replay.recordings import Replayed
from lbr2pgo.sources.base import SourceInfo, StackSource
from lbr2pgo.support.arrays import I64, U8

_AMD = "AuthenticAMD"  # vendor in perf's cpuid (perf: tools/perf/arch/x86/util/header.c)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read, and what the files say of themselves."""

    evidence: Evidence
    infos: tuple[SourceInfo, ...]
    tallies: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    """What the entries themselves show of a recording."""

    kinds: set[int] = field(default_factory=set)
    entries: int = 0
    with_prediction: int = 0

    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None:
        self.kinds.update(np.unique(kinds[spaces >= 0]).tolist())
        counted = np.repeat(spaces >= 0, np.diff(batch.offsets))
        says = batch.flags & np.uint64(MISPREDICTED | PREDICTED) != 0
        self.entries += int(counted.sum())
        self.with_prediction += int((counted & says).sum())


@dataclass(slots=True)
class _Tables:
    """What all sources' second passes found."""

    cycles: list[CycleCounts] = field(default_factory=list)
    iterations: list[CycleCounts] = field(default_factory=list)
    stacks: list[StackCounts] = field(default_factory=list)
    spreads: list[SpreadTable] = field(default_factory=list)
    copies: list[BranchCounts] = field(default_factory=list)
    singles: list[SingleBranches] = field(default_factory=list)
    paths: list[PathCounts] = field(default_factory=list)


def gather(found: Replayed, *, followed: int | None = None) -> Gathered:
    """Read the samples of replayed recordings again, for what counts don't tell.

    `followed` says through how many of the hottest functions samples are followed; None: all.
    """
    known = Evidence(found.program, DebugInfo.open(found.program.image), found.flow)
    evidence = _evidence(found, known, plan_paths(known, followed))
    infos = tuple(source.info for source in found.sources)
    return Gathered(evidence, infos, found.flow.tallies, found.notes)


def _evidence(found: Replayed, known: Evidence, plan: ChainPlan) -> Evidence:
    seen, tables = _Seen(), _Tables()
    for source, options in zip(found.sources, found.counting, strict=True):
        if isinstance(source, StackSource):
            _look_again(source, known, plan, options, seen, tables)
    has_samples = bool(tables.spreads)
    # Counts beside samples say nothing of how they are spread, nor do entries that are no
    # neighbours in time: then none is used.
    return replace(
        known,
        limits=_limits([source.info for source in found.sources], seen, has_samples=has_samples),
        cycles=cycle_counts.merge(tables.cycles) if has_samples else None,
        iterations=cycle_counts.merge(tables.iterations) if has_samples else None,
        stacks=call_stacks.merge(tables.stacks) if tables.stacks else None,
        copies=merge(tables.copies) if any(map(len, tables.copies)) else None,
        singles=single_branches.merge(tables.singles),
        paths=chain_paths.merge(tables.paths) if tables.paths else None,
        spread=spread(tables.spreads, len(known.flow.instructions))
        if len(tables.spreads) == len(found.sources) and seen.kinds <= {StackKind.CONSECUTIVE}
        else None,
    )


def _look_again(
    source: StackSource,
    known: Evidence,
    plan: ChainPlan,
    options: CountingOptions,
    seen: _Seen,
    tables: _Tables,
) -> None:
    """The second pass over a source, which knows the code that the first one found."""
    program, flow = known.program, known.flow
    reading = Reading(source, program.image.layout, options)
    cycles, loops = CycleTable(reading.spaces), CycleTable(reading.spaces, loops=True)
    stacks = StackTable(reading.spaces, program.regions)
    copies = CopyTable(reading.spaces)
    singles = SingleTable(reading.spaces, source.info.events)
    reader, spreads, paths = RunReader(flow, reading.spaces), SpreadTable(flow), PathTable(plan)
    for batch, spaces, kinds in reading.batches(program.address_of):
        seen.add(batch, spaces, kinds)
        cycles.add(batch, spaces, kinds)
        loops.add(batch, spaces, kinds)
        copies.add(batch, spaces, kinds)
        singles.add(batch, spaces, kinds)
        stacks.add(batch, call_stacks.selected(spaces, kinds))
        runs = reader.runs(batch, spaces, kinds)
        spreads.add(runs)
        paths.add(runs)
    tables.cycles.append(cycles.counts())
    tables.iterations.append(loops.counts())
    tables.spreads.append(spreads)
    tables.paths.append(paths.counts())
    tables.copies.append(copies.counts())
    tables.singles.append(singles.counts())
    if any(is_call_stack(event.branch_sample_type) for event in source.info.events):
        tables.stacks.append(stacks.counts())


def _limits(infos: list[SourceInfo], seen: _Seen, *, has_samples: bool) -> Limits:
    return Limits(
        is_filtered=StackKind.SELECTED in seen.kinds,
        is_single=any(e.records_single_branches for info in infos for e in info.events),
        is_call_stack=seen.kinds == {StackKind.OPEN_CALLS},
        is_amd=any(_AMD in info.details.get("cpuid", "") for info in infos),
        is_simulated=any(info.details.get("cpuid") == SIMULATED_CPU for info in infos),
        has_samples=has_samples,
        entries=seen.entries,
        with_prediction=seen.with_prediction,
    )
