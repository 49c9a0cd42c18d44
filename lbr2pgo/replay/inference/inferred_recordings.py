"""Recordings with too few branches, or none: a flow inferred from what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lbr2pgo.counting.count import Counted
from lbr2pgo.counting.count_instructions import count_instructions
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.counting.selected_samples import is_wanted
from lbr2pgo.model.branch_counts import BranchCounts, no_counts
from lbr2pgo.model.instruction_counts import InstructionCounts, merge
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.inference.from_branches import (
    Kept,
    PartialFunctions,
    counts_with_flow,
    kept_by,
)
from lbr2pgo.replay.inference.from_instructions import counts_of_instructions
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.replay.replaying import Replaying, match_notes, merged
from lbr2pgo.sources.base import Source, SourceInfo, StackSource
from lbr2pgo.support.counted import counted
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings


class ReplayingInstructions(Replaying):
    """Samples are counted by their instruction, and what ran is inferred from these."""

    are_recorded = False

    def count(self, source: Source, progress: Progress | None) -> Counted[InstructionCounts]:
        """See `Replaying`."""
        self.refuse_other_machine(source)
        return count_instructions(source, self.facts, self.options.counting, progress)

    def reading(self, source: StackSource) -> SampleReading:
        """See `Replaying`."""
        self.refuse_other_machine(source)
        return SampleReading(source, self.facts, self.options.counting, by_instruction=True)

    def branches(self, parts: Sequence[InstructionCounts], timings: Timings) -> BranchCounts:
        """See `Replaying`; none where no sample is in the program."""
        self._samples = samples = merged(parts, merge)
        if not len(samples):
            return replace(no_counts(samples.build_id), tallies=samples.tallies)
        events = [event for source in self.sources for event in source.info.events]
        wanted = [event for event in events if is_wanted(event, self.options.counting.event)]
        # Samples may be of any instruction behind the one that counted.
        is_imprecise = any(event.precise_ip == 0 for event in wanted)
        with timings.stage("infer"):
            targets = indirect_targets(self.program, samples.address)
            return counts_of_instructions(samples, self.program, targets, is_imprecise=is_imprecise)

    def notes_on(self, source: Source, found: Counted[InstructionCounts]) -> Iterator[str]:
        """See `Replaying`."""
        yield from match_notes(found)
        yield from precision_notes(source.info)
        if source.info.advice is not None:
            yield source.info.advice

    def notes_of(self, flow: Flow) -> Iterator[str]:
        """See `Replaying`."""
        number = counted(self._samples.total, "sample")
        yield f"branches and fall-throughs are inferred from {number} (--no-lbr)"

    def replayed(self, names: Sequence[str], timings: Timings) -> Replayed:
        """See `Replaying`."""
        found = super().replayed(names, timings)
        return replace(found, filters=(), is_inferred=True, samples=self._samples)


class ReplayingFlow(Replaying):
    """Branches are counted, and what must have run between them is inferred."""

    def replayed(self, names: Sequence[str], timings: Timings) -> Replayed:
        """See `Replaying`."""
        found = super().replayed(names, timings)
        kept = kept_by(event for source in self.sources for event in source.info.events)
        said = "direct branches and fall-throughs are those of an inferred flow (--infer)"
        if kept.is_whole:
            said += "; these stacks are whole, so it has nothing to add"
        return _with_flow(found, kept, said, timings)


class ReplayingStale(Replaying):
    """Counts of an earlier build that this one has a place for, with what must lie between them."""

    are_recorded = False

    def __init__(self, counts: BranchCounts, partial: PartialFunctions, *given: Any) -> None:
        """Of functions in `partial` some were lost. Returns are in none."""
        super().__init__(*given)
        self._counts, self._partial = counts, partial

    def branches(self, parts: Sequence[object], timings: Timings) -> BranchCounts:
        """See `Replaying`."""
        return self._counts

    def notes_of(self, flow: Flow) -> Iterator[str]:
        """See `Replaying`."""
        yield from ()

    def replayed(self, names: Sequence[str], timings: Timings) -> Replayed:
        """See `Replaying`."""
        kept = Kept(frozenset(Kind) - {Kind.RET}, is_whole=True, partial=self._partial)
        lost = f"of {len(self._partial.start):,} functions some had no place"
        said = f"counts are those of an earlier build; {lost}"
        return _with_flow(super().replayed(names, timings), kept, said, timings)


def _with_flow(found: Replayed, kept: Kept, said: str, timings: Timings) -> Replayed:
    """What recorded branches, of which these were kept, tell with what must have run between."""
    if not len(found.counts):
        return found
    with timings.stage("infer"):
        targets = indirect_targets(found.program, found.flow.instructions.address)
        counts = counts_with_flow(found.flow, found.program, kept, targets)
    with timings.stage("replay"):
        flow = replay(counts, found.program, found.judged_by)
    return replace(found, flow=flow, notes=(*found.notes, said), filters=(), is_inferred=True)


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
