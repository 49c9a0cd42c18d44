"""Recordings with too few branches, or none: a flow inferred from what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lbr2pgo.counting.count import Progress, is_wanted
from lbr2pgo.counting.count_instructions import CountedInstructions, count_instructions
from lbr2pgo.counting.find_image import refuse_other_machine
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.doubts import told_of
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.model.instruction_counts import InstructionCounts, merge
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_branches import Kept, counts_with_flow, kept_by
from lbr2pgo.replay.inference.from_instructions import counts_of_instructions
from lbr2pgo.replay.recordings import (
    Inputs,
    Replayed,
    damage_of,
    image_facts,
    match_notes,
    merged,
    open_inputs,
    progress_over_all,
    replay_options,
)
from lbr2pgo.replay.replay import replay
from lbr2pgo.sources.base import Source, SourceInfo
from lbr2pgo.sources.series import size_of
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.counted import counted
from lbr2pgo.support.timings import Timings

FEWEST = 1000
"""Samples from which a flow can be inferred: of SQLite's conditional branches, which are many, with
so few a third of the weight is wrong, and with 20,000 a twelfth (docs/accuracy.md)."""


def read_and_infer(
    inputs: Inputs,
    progress: Progress | None = None,
    timings: Timings | None = None,
    *,
    force: bool = False,
) -> Replayed:
    """Open recordings and their program, count samples by instruction, and infer what ran.

    Raises InputError as `read_and_replay` does, EmptyProfileError where no sample is in the
    program, and IncompleteError for fewer than `FEWEST`, unless by `force`.
    """
    timings = timings or Timings()
    opened = open_inputs(inputs, progress, timings)
    sources, program, notes = opened.sources, opened.program, opened.notes
    facts = image_facts(inputs, program, sources)
    sizes = [size_of(name) for name in opened.names]
    counts: list[InstructionCounts] = []
    for i, (name, source) in enumerate(zip(opened.names, sources, strict=True)):
        refuse_other_machine(facts.layout, source.info.machine, where=source.info.path)
        with timings.stage("read and count", sizes[i]):
            ticks = progress_over_all(progress, sizes, i)
            found = count_instructions(source, facts, inputs.counting, ticks)
        counts.append(found.counts)
        notes = (*notes, *(told_of(name, note) for note in _notes(found, source)))
    samples = merged(counts, merge)
    if not len(samples):
        raise EmptyProfileError(samples.tallies, notes)
    with timings.stage("infer"):
        targets = indirect_targets(program, samples.address)
        imprecise = any(_is_imprecise(source.info, inputs.counting.event) for source in sources)
        inferred = counts_of_instructions(samples, program, targets, is_imprecise=imprecise)
    refuse_thin(inferred.tallies["instructions_sampled"], inferred.tallies, notes, force=force)
    with timings.stage("replay"):
        judged_by = replay_options(inputs)
        flow = replay(inferred, program, judged_by)
    number = counted(samples.total, "sample")
    said = f"branches and fall-throughs are inferred from {number} (--no-lbr)"
    return Replayed(
        program, tuple(sources), facts, inputs.counting, judged_by, flow, (*notes, said), (),
        is_inferred=True, samples=samples,
    )  # fmt: skip


def with_flow(found: Replayed, timings: Timings | None = None) -> Replayed:
    """What recorded branches tell, with what must have run between them (`branches`)."""
    timings = timings or Timings()
    if not len(found.counts):
        return found
    kept = kept_by(event for source in found.sources for event in source.info.events)
    with timings.stage("infer"):
        targets = indirect_targets(found.program, found.flow.instructions.address)
        counts = counts_with_flow(found.flow, found.program, kept, targets)
    with timings.stage("replay"):
        flow = replay(counts, found.program, found.judged_by)
    said = "direct branches and fall-throughs are those of an inferred flow (--infer)"
    if kept.is_whole:
        said += "; these stacks are whole, so it has nothing to add"
    return replace(found, flow=flow, notes=(*found.notes, said), filters=(), is_inferred=True)


def with_stale(
    counts: BranchCounts,
    partial: ImageAddresses,
    program: Program,
    inputs: Inputs,
    timings: Timings | None = None,
) -> Replayed:
    """Counts of an earlier build that this one has a place for, with what must lie between them.

    Of functions in `partial`, by their starts, some counts were lost. Returns are in none.
    """
    if not len(counts):
        raise EmptyProfileError(counts.tallies, (), "the profile holds no branches of this binary")
    judged_by = replay_options(inputs)
    flow = replay(counts, program, judged_by)
    kept = Kept(frozenset(Kind) - {Kind.RET}, is_whole=True, partial=tuple(partial.tolist()))
    targets = indirect_targets(program, flow.instructions.address)
    with (timings or Timings()).stage("infer"):
        inferred = replay(counts_with_flow(flow, program, kept, targets), program, judged_by)
    said = f"counts are those of an earlier build; of {len(partial):,} functions some had no place"
    return Replayed(
        program, (), image_facts(inputs, program, ()), inputs.counting, judged_by, inferred,
        (said,), (),
        is_inferred=True,
    )  # fmt: skip


def refuse_thin(
    samples: int, tallies: Mapping[str, int], notes: tuple[str, ...], *, force: bool
) -> None:
    """Raise IncompleteError where samples are too few to infer from."""
    if samples < FEWEST and not force:
        said = f"{counted(samples, 'sample')} {'is' if samples == 1 else 'are'}"
        raise IncompleteError(
            f"{said} too few to infer a flow from",
            tallies,
            notes,
            f"Record more than {FEWEST:,} (a longer run, a shorter period), or give --force.",
        )


def _notes(found: CountedInstructions, source: Source) -> Iterator[str]:
    yield from match_notes(found.match)
    yield from precision_notes(source.info)
    yield from damage_of(source)


def _is_imprecise(info: SourceInfo, chosen: str | None) -> bool:
    """Whether samples may be of any instruction behind the one that counted."""
    return any(event.precise_ip == 0 for event in info.events if is_wanted(event, chosen))


def precision_notes(info: SourceInfo) -> Iterator[str]:
    """How far from the event that counted each sample's instruction may be."""
    for event in info.events:
        precise = event.precise_ip
        if precise is not None:
            yield f"event {event.name} had precise_ip {precise}: {_MEANING[precise]}"


_MEANING = (
    "samples may be of instructions behind the one that counted, so those behind slow ones were "
    "left out or cut; record a precise event (instructions:upp) where there is one",
    "samples may be of the instruction behind the one that counted",
    "samples were asked to be of the instruction that counted",
    "samples are of the instruction that counted",
)
"""perf_event_open(2), precise_ip."""
