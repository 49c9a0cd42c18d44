"""One image on its way from what sources hold to `Replayed`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from lbr2pgo.counting.bias import Correction
from lbr2pgo.counting.borders import merge as merge_borders
from lbr2pgo.counting.branch_filters import filter_names, kind_of_stacks
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import Counted, count_image
from lbr2pgo.counting.find_by_branches import CodeBranches
from lbr2pgo.counting.find_image import refuse_other_machine
from lbr2pgo.counting.place import Beside, ImageFacts
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_counts import FROM, TO, BranchCounts, no_counts
from lbr2pgo.model.compat import (
    ALL_ENTRIES_COUNT,
    CODE_BY_SYMBOLS,
    FULL_STACKS_DOUBTED,
    LEAF_DROPS_SAMPLE,
    OURS,
    Compat,
)
from lbr2pgo.model.count_sums import merge
from lbr2pgo.model.doubts import told_of
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.address_translation import has_translation
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.contradicted import contradicted
from lbr2pgo.replay.fusion import FUSED
from lbr2pgo.replay.llvm_code import code_of_llvm
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.prologues import in_prologue_or_epilogue
from lbr2pgo.replay.replay import Flow, ReplayOptions, replay
from lbr2pgo.replay.replayed import Look, Replayed
from lbr2pgo.replay.unlogged import unlogged
from lbr2pgo.sources.base import BuildSource, Source, SourceInfo, StackSource
from lbr2pgo.support.addresses import SLOT_BITS, image_addresses
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.program.process import Part

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How samples are chosen and judged."""

    counting: CountingOptions = field(default_factory=CountingOptions)
    strict: bool = False
    """Reject fall-throughs over a call."""
    compat: Compat = OURS
    """Whose numbers to give even where we know better."""
    correct_runs: bool = False
    """Give the newest branch of each stack a fall-through, too (`replay.newest_runs`)."""

    @property
    def uses_probes(self) -> bool:
        """Whether `LEAF_DROPS_SAMPLE` looks at the program's pseudo probes."""
        return True


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another image of the program's process, which counts as a part of it."""

    part: Part
    mappings: tuple[Mmap, ...] = ()
    """Where it lies, if no file shows it."""

    def for_counting(self) -> Beside:
        """What counting knows of it."""
        layout = self.part.program.image.layout
        return Beside(layout, self.part.slot, self.part.is_named, self.mappings)


class Replaying:
    """One image on its way from sources to `Replayed`; what infers takes a step of it otherwise."""

    are_recorded: ClassVar[bool] = True
    """Whether what is counted are branches as they were recorded."""

    def __init__(
        self,
        program: Program,
        options: ReadingOptions,
        sources: Sequence[Source],
        beside: Sequence[Neighbour] = (),
    ) -> None:
        self.program, self.options, self.sources, self.beside = program, options, sources, beside
        self.facts = image_facts(options, program, sources, beside)
        self.counted: list[Counted[Any] | InputError] = []
        """Of each source."""
        self.look: Look | None = None
        self.whole: Program | None = None
        """With those beside it that counts are of."""

    @property
    def there(self) -> list[Counted[Any]]:
        """Of those that show the image."""
        return [found for found in self.counted if not isinstance(found, InputError)]

    def reading(self, source: StackSource) -> SampleReading:
        """What counts a source's samples."""
        self.refuse_other_machine(source)
        return SampleReading(source, self.facts, self.options.counting)

    def count(self, source: Source, progress: Progress | None) -> Counted[Any]:
        """Count a source alone."""
        self.refuse_other_machine(source)
        return count_image(source, self.facts, self.options.counting, progress)

    def again(self, number: int) -> SampleReading | None:
        """What reads a source a second time; None where there is no need."""
        source, found = self.sources[number], self.counted[number]
        if not isinstance(source, StackSource) or isinstance(found, InputError):
            return None
        if self.look is None and not found.is_biased:
            return None
        known = found.correction or Correction()
        counting, earlier = self.options.counting, found.reading
        reading = SampleReading(source, self.facts, counting, known, earlier=earlier)
        if self.look is not None:
            reading.onlookers.append(self.look.at(reading))
        return reading

    def with_told(self, found: Replayed) -> Replayed:
        """With what was looked for."""
        return found if self.look is None else replace(found, told=self.look.told(found.flow))

    def refuse_other_machine(self, source: Source) -> None:
        """Raise InputError for a recording of another machine."""
        layout = self.program.image.layout
        refuse_other_machine(layout, source.info.machine, where=source.info.path)

    def replayed(self, names: Sequence[str], timings: Timings) -> Replayed:
        """What all sources, by these names in notes, come to."""
        damage, notes, filters = list[str](), list[str](), list[str]()
        for name, source, found in zip(names, self.sources, self.counted, strict=True):
            if isinstance(found, InputError):
                notes.append(told_of(name, found.what))
                continue
            left_out = [told_of(name, note) for note in filter_notes(source.info)]
            filters += left_out
            notes += [told_of(name, note) for note in self.notes_on(source, found)]
            damage += [told_of(name, note) for note in damage_of(source)]
        borders = merge_borders([found.borders for found in self.there])
        counts = self.branches([found.counts for found in self.there], timings)
        with timings.stage("replay"):
            judged_by = ReplayOptions(strict=self.options.strict, compat=self.options.compat)
            beside = [each.part for each in self.beside]
            self.whole = self.whole or with_parts(self.program, beside, counts)
            flow = replay(counts, self.whole, judged_by)
        wrong = contradicted(flow) if self.are_recorded and not self.is_named else None
        doubt = wrong or (unlogged(flow) if self.are_recorded else None)
        doubts = () if doubt is None else (doubt,)
        return Replayed(
            self.whole, tuple(self.sources), judged_by, flow,
            (*doubts, *damage, *notes, *self.notes_of(flow)), tuple(filters), borders,
            contradiction=wrong,
        )  # fmt: skip

    @property
    def is_named(self) -> bool:
        """Whether all sources tell which build they are of; `--build-id` is the user's word."""
        word = self.options.counting.build_id
        return all(
            isinstance(source, BuildSource) or (word is None and tells_build(found))
            for source, found in zip(self.sources, self.counted, strict=True)
        )

    def branches(self, parts: Sequence[Any], timings: Timings) -> BranchCounts:
        """What was counted of all sources together."""
        counts = merged(parts or [no_counts(self.program.image.build_id)], merge)
        return impute(counts) if self.options.correct_runs else counts

    def notes_on(self, source: Source, found: Counted[Any]) -> Iterator[str]:
        """What is to be said of one source."""
        yield from match_notes(found)
        yield from filter_notes(source.info)

    def notes_of(self, flow: Flow) -> Iterator[str]:
        """And of what they come to."""
        yield from replay_notes(flow)


MakeReplaying = Callable[
    [Program, ReadingOptions, Sequence[Source], Sequence[Neighbour]], Replaying
]


def merged(counts: Sequence[T], add_up: Callable[[Sequence[T]], T]) -> T:
    """The counts of all inputs; raises InputError if `add_up` can't add them up (ValueError)."""
    try:
        return add_up(counts)
    except ValueError as error:
        raise InputError(
            f"the profiles do not go together: {error}",
            cure="Convert the profiles of each build with the binary of that build.",
        ) from error


def image_facts(
    options: ReadingOptions,
    program: Program,
    sources: Sequence[Source],
    beside: Sequence[Neighbour] = (),
) -> ImageFacts:
    """What llvm-profgen and perf2bolt would drop, their compatible modes do, too."""
    facts = ImageFacts(
        program.image.layout,
        program.address_of,
        lambda: _branches(program),
        tuple(each.for_counting() for each in beside),
    )
    compat = options.compat
    if compat.follows(FULL_STACKS_DOUBTED) and program.image.architecture.repeats_newest:
        facts = replace(facts, doubts_full_stacks=has_translation(program.image))
    if compat.follows(ALL_ENTRIES_COUNT):
        facts = replace(facts, believes_entries=True)
    if compat.follows(CODE_BY_SYMBOLS):
        facts = replace(facts, code_of_llvm=code_of_llvm(program))
    has_chains = any(source.info.wants_contexts for source in sources)
    if not (has_chains and compat.follows(LEAF_DROPS_SAMPLE)):
        return facts
    debug, by_probes = DebugInfo(program.debug_files), options.uses_probes
    return replace(
        facts,
        skips_leaf=lambda leaves: in_prologue_or_epilogue(
            leaves, program, debug, by_probes=by_probes
        ),
    )


def with_parts(program: Program, beside: Sequence[Part], counts: BranchCounts) -> Program:
    """The program, with those other images of its process that counts are of."""
    ends = [column[counts.has(bit)] for column, bit in ((counts.from_, FROM), (counts.to, TO))]
    slots = set(distinct(np.concatenate(ends) >> np.uint64(SLOT_BITS)).tolist()) if beside else ()
    there = [part for part in beside if part.slot in slots]
    if not there:
        return program
    from lbr2pgo.program.process import Part, Process  # of reports alone
    from lbr2pgo.replay.jit import with_seen

    others = (with_seen(part, counts) for part in there)
    return Process([Part(program, 0, Path(program.image.path).name), *others])


def _branches(program: Program) -> CodeBranches:
    table = program.branches
    address, target = image_addresses(table.address), image_addresses(table.target)
    return CodeBranches(address, target, table.has_target)


def damage_of(source: Source) -> Iterator[str]:
    """What a source lost, as far as it was read; damage is a doubt."""
    return (type(reason)(f"{reason}: {n:,}") for reason, n in source.health().items() if n)


def tells_build(found: Counted[Any] | InputError) -> bool:
    """Whether a program was recognised by more than addresses and names."""
    return isinstance(found, InputError) or (
        found.match is not None and found.match.how in {"build-id", "process"}
    )


def match_notes(found: Counted[Any]) -> Iterator[str]:
    """What had to be assumed of which images were recorded."""
    for match in (found.match, *found.beside):
        if match is not None and match.assumption:
            yield match.assumption


def filter_notes(info: SourceInfo) -> Iterator[str]:
    """Of which events only single branches count, and why."""
    for event in info.events:
        if kind_of_stacks(event) == StackKind.SELECTED:
            why = f"was filtered ({','.join(filter_names(event))})"
            if event.records_single_branches:
                why = "samples branches one by one"
            yield (
                f"event {event.name} {why}: its branches are counted, "
                "but what ran between them is not known"
            )


def replay_notes(flow: Flow) -> Iterator[str]:
    """What was repaired in laying counts over the code."""
    fused = flow.tallies[FUSED]
    if fused:
        yield (
            f"{fused:,} branches were recorded at the compare before them (AMD branch fusion) and "
            "moved to where they are"
        )
