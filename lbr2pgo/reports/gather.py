"""From files to `Evidence`: two passes over the samples, one replay in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.chains import plan_paths
from lbr2pgo.analyses.evidence import Evidence, Limits
from lbr2pgo.conversion import open_inputs, reading_notes, replay_notes
from lbr2pgo.counting.count import CountingOptions, Progress, Reading, count
from lbr2pgo.counting.find_image import refuse_other_machine
from lbr2pgo.evidence import call_stacks, cycle_counts, single_branches
from lbr2pgo.evidence import path_counts as chain_paths
from lbr2pgo.evidence.call_stacks import StackCounts, StackTable
from lbr2pgo.evidence.cycle_counts import CycleCounts, CycleTable
from lbr2pgo.evidence.duplicates import CopyTable
from lbr2pgo.evidence.effective_samples import SpreadTable, spread
from lbr2pgo.evidence.path_counts import ChainPlan, PathCounts, PathTable
from lbr2pgo.evidence.sample_runs import RunReader
from lbr2pgo.evidence.single_branches import SingleBranches, SingleTable
from lbr2pgo.model.branch_counts import BranchCounts, merge
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, BranchStacks
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import replay
from lbr2pgo.sources.base import Source, SourceInfo, StackSource
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

    modes: set[int] = field(default_factory=set)
    entries: int = 0
    with_prediction: int = 0

    def add(self, batch: BranchStacks, spaces: I64, modes: U8) -> None:
        self.modes.update(np.unique(modes[spaces >= 0]).tolist())
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


def gather(
    profiles: tuple[Path, ...],
    binary: Path,
    options: CountingOptions | None = None,
    progress: Progress | None = None,
    *,
    followed: int | None = None,
) -> Gathered:
    """Read, count and replay recordings of one binary; raises InputError as `count` does.

    `followed` says through how many of the hottest functions samples are followed; None: all.
    """
    program, sources = open_inputs(profiles, Image.opening(binary))
    return gather_sources(sources, program, options, progress, followed=followed)


def gather_sources(
    sources: list[Source],
    program: Program,
    options: CountingOptions | None = None,
    progress: Progress | None = None,
    *,
    followed: int | None = None,
) -> Gathered:
    """As `gather`, of what is open already."""
    options = options or CountingOptions()
    counted, notes = [], []
    for source in sources:
        refuse_other_machine(program.image.layout, source.info.machine, where=source.info.path)
        found = count(source, program.image.layout, options, program.address_of, progress)
        counted.append(found.counts)
        notes += [f"{source.info.path}: {note}" for note in reading_notes(found, source.health())]
    flow = replay(merge(counted), program)
    known = Evidence(program, DebugInfo.open(program.image), flow)
    return Gathered(
        evidence=_evidence(sources, known, plan_paths(known, followed), options),
        infos=tuple(source.info for source in sources),
        tallies=flow.tallies,
        notes=(*notes, *replay_notes(flow)),
    )


def _evidence(
    sources: list[Source], known: Evidence, plan: ChainPlan, options: CountingOptions
) -> Evidence:
    from lbr2pgo.native import traces

    seen, tables = _Seen(), _Tables()
    for source in sources:
        if isinstance(source, StackSource):
            _look_again(source, known, plan, options, seen, tables)
    has_samples = bool(tables.spreads)
    # Counts beside samples say nothing of how they are spread, nor do entries that are no
    # neighbours in time: then none is used.
    return replace(
        known,
        limits=_limits([source.info for source in sources], seen, has_samples=has_samples),
        cycles=cycle_counts.merge(tables.cycles) if has_samples else None,
        iterations=cycle_counts.merge(tables.iterations) if has_samples else None,
        stacks=call_stacks.merge(tables.stacks) if tables.stacks else None,
        copies=merge(tables.copies) if any(map(len, tables.copies)) else None,
        singles=single_branches.merge(tables.singles),
        paths=chain_paths.merge(tables.paths) if tables.paths else None,
        spread=spread(tables.spreads, len(known.flow.instructions))
        if len(tables.spreads) == len(sources) and seen.modes <= {traces.CHAINS}
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
    for batch, spaces, modes in reading.batches(program.address_of):
        seen.add(batch, spaces, modes)
        cycles.add(batch, spaces, modes)
        loops.add(batch, spaces, modes)
        copies.add(batch, spaces, modes)
        singles.add(batch, spaces, modes)
        stacks.add(batch, call_stacks.selected(spaces, modes))
        runs = reader.runs(batch, spaces, modes)
        spreads.add(runs)
        paths.add(runs)
    tables.cycles.append(cycles.counts())
    tables.iterations.append(loops.counts())
    tables.spreads.append(spreads)
    tables.paths.append(paths.counts())
    tables.copies.append(copies.counts())
    tables.singles.append(singles.counts())
    if any(call_stacks.is_call_stack(event.branch_sample_type) for event in source.info.events):
        tables.stacks.append(stacks.counts())


def _limits(infos: list[SourceInfo], seen: _Seen, *, has_samples: bool) -> Limits:
    from lbr2pgo.native import traces

    return Limits(
        is_filtered=traces.BRANCHES_ONLY in seen.modes,
        is_single=any(e.records_single_branches for info in infos for e in info.events),
        is_call_stack=seen.modes == {traces.NOTHING},
        is_amd=any(_AMD in info.details.get("cpuid", "") for info in infos),
        has_samples=has_samples,
        entries=seen.entries,
        with_prediction=seen.with_prediction,
    )
