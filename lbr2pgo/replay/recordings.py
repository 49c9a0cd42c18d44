"""The first half of every road: recordings opened, counted, and laid over their program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from lbr2pgo.counting.bias import Correction
from lbr2pgo.counting.borders import Borders
from lbr2pgo.counting.borders import merge as merge_borders
from lbr2pgo.counting.count import (
    Counted,
    CountingOptions,
    Onlooker,
    Progress,
    SampleReading,
    count_image,
    count_together,
    filter_names,
    kind_of_stacks,
    look_together,
)
from lbr2pgo.counting.find_by_branches import CodeBranches
from lbr2pgo.counting.find_image import refuse_other_machine
from lbr2pgo.counting.place import Beside, ImageFacts
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
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.address_translation import has_translation
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.fusion import FUSED
from lbr2pgo.replay.llvm_code import code_of_llvm
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.prologues import in_prologue_or_epilogue
from lbr2pgo.replay.recorded_program import recorded_program
from lbr2pgo.replay.replay import Flow, ReplayOptions, replay
from lbr2pgo.replay.unlogged import unlogged
from lbr2pgo.sources.base import Addresses, Source, SourceInfo, StackSource
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.sources.series import open_recordings, size_of
from lbr2pgo.support import headway
from lbr2pgo.support.addresses import SLOT_BITS
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.program.process import Part

T = TypeVar("T")

FEWEST = 1000
"""Samples from which a flow can be inferred: of SQLite's conditional branches, which are many, with
so few a third of the weight is wrong, and with 20,000 a twelfth (docs/accuracy.md)."""


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


@dataclass(frozen=True, slots=True)
class Inputs(ReadingOptions):
    """What to read, and how."""

    profiles: tuple[Path, ...]
    binary: Path | None = None
    """None for the program that the recordings say; see `recorded_program`."""

    def __post_init__(self) -> None:
        if not self.profiles:
            raise InputError("no profile was given", cure="Name at least one.")

    @property
    def paths_read(self) -> tuple[Path, ...]:
        """The files that are named to be read."""
        return self.profiles if self.binary is None else (*self.profiles, self.binary)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Recordings counted and laid over their program."""

    program: Program
    sources: tuple[Source, ...]
    judged_by: ReplayOptions
    flow: Flow
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    filters: tuple[str, ...]
    """Why some recordings show single branches and not what ran between them."""
    borders: Borders = field(default_factory=lambda: merge_borders(()))
    """Where branches that leave the program went, and where those that reach it came from."""
    is_inferred: bool = False
    """The counts are not recorded branches, but a flow that was inferred from something else."""
    samples: InstructionCounts | None = None
    """What it was inferred from, where that is samples without branches."""
    told: Mapping[Any, Any] = field(default_factory=dict)
    """What a `Look` found in the second reading."""

    @property
    def counts(self) -> BranchCounts:
        """What was counted, each branch where it is."""
        return self.flow.counts

    def refuse_doubtful(self) -> None:
        """Raise IncompleteError for too few samples, or where some branches alone seem recorded."""
        if self.samples is not None:
            self.refuse_nothing()
            number = self.flow.tallies["instructions_sampled"]
            said = f"{counted(number, 'sample')} {'is' if number == 1 else 'are'}"
            doubt = None if number >= FEWEST else f"{said} too few to infer a flow from"
            cure = f"Record more than {FEWEST:,} (a longer run, a shorter period), or give --force."
        else:
            doubt = None if self.is_inferred else unlogged(self.flow)
            cure = "Record all branches (perf record -b); print text with perf script --header."
            cure += " --infer infers the others, --force takes them as they are."
        if doubt is not None:
            notes = [note for note in self.notes if note != doubt]
            raise IncompleteError(doubt, self.flow.tallies, notes, cure)

    def refuse_nothing(self) -> None:
        """Raise EmptyProfileError where the recordings hold nothing of the program."""
        if not len(self.counts):
            what = "the inputs hold no counts of this binary"
            raise EmptyProfileError(self.counts.tallies, self.notes, what)


class Look(Protocol):
    """What is looked for in the samples when counts are known, in a second reading."""

    def at(self, reading: SampleReading) -> Onlooker:
        """What looks at the samples of a source."""

    def told(self, flow: Flow) -> Mapping[Any, Any]:
        """What was found, of the instructions of a flow."""


Asks = Callable[[Replayed], Look | None]
"""What to look for by what was counted; a bias may not be corrected there yet."""


def read_and_replay(
    inputs: Inputs,
    progress: Progress | None = None,
    timings: Timings | None = None,
    replaying: MakeReplaying | None = None,
    asks: Asks | None = None,
) -> Replayed:
    """Open recordings and their program, count, and replay; `Replaying` unless told otherwise.

    Raises InputError for what can't be read, does not go together, or was recorded of another
    program.
    """
    timings = timings or Timings()
    with timings.stage("open the inputs"):
        with headway.heard_by(progress):
            recordings = open_recordings(inputs.profiles)
        sources = [each.source for each in recordings]
        binary = inputs.binary or recorded_program(sources)
        program = Program.open(binary)
        notes: tuple[str, ...] = tuple(repetitions(inputs.profiles))
    if inputs.binary is None:
        note = f"the program is {binary}, as recorded (build-id {program.image.build_id})"
        notes = (*notes, note)
    names = [each.name for each in recordings]
    (found,) = replay_images(
        sources, [program], inputs, progress, timings, names=names, replaying=replaying, asks=asks
    )
    return replace(found, notes=(*notes, *found.notes))


def replay_sources(
    sources: Sequence[Source],
    program: Program,
    options: ReadingOptions | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
    *,
    names: Sequence[str] | None = None,
    beside: Sequence[Neighbour] = (),
    asks: Asks | None = None,
) -> Replayed:
    """As `read_and_replay`, of what is open already; `names` are what notes call the sources."""
    (found,) = replay_images(
        sources, [program], options, progress, timings, names=names, beside=beside, asks=asks
    )
    return found


def replay_images(
    sources: Sequence[Source],
    programs: Sequence[Program],
    options: ReadingOptions | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
    *,
    names: Sequence[str] | None = None,
    beside: Sequence[Neighbour] = (),
    skips_absent: bool = False,
    replaying: MakeReplaying | None = None,
    asks: Asks | None = None,
) -> list[Replayed]:
    """As `replay_sources` for each of several images, in one pass over each source.

    There is a second one where a bias has to be corrected, or something is looked for. With
    `skips_absent` a source that does not show an image has no counts of it, and that is a
    note; else it is an InputError.
    """
    options, timings = options or ReadingOptions(), timings or Timings()
    names = names or [source.info.path for source in sources]
    images = [(replaying or Replaying)(program, options, sources, beside) for program in programs]
    sizes = [size_of(name) for name in names]

    def read(stage: str, each: Callable[[int, Progress | None], None]) -> None:
        for i, size in enumerate(sizes):
            with timings.stage(stage, size):
                each(i, progress_over_all(progress, sizes, i))

    def laid() -> list[Replayed]:
        return [image.replayed(names, timings) for image in images]

    read("read and count", partial(_count_images, sources, images, skips_absent=skips_absent))
    is_biased = any(each.is_biased for image in images for each in image.there)
    found = laid() if asks is not None or not is_biased else []
    if asks is not None:
        for image, each in zip(images, found, strict=True):
            image.look = asks(each)
    if is_biased or any(image.look for image in images):
        read("look at the samples again", partial(_look_again, sources, images))
    found = laid() if is_biased else found
    return [image.with_told(each) for image, each in zip(images, found, strict=True)]


class Replaying:
    """One image on its way from sources to `Replayed`; what infers takes a step of it otherwise."""

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
        reading = SampleReading(source, self.facts, self.options.counting, known)
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
        return Replayed(
            self.whole, tuple(self.sources), judged_by, flow,
            (*damage, *notes, *self.notes_of(flow)), tuple(filters), borders,
        )  # fmt: skip

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


def _count_images(
    sources: Sequence[Source],
    images: Sequence[Replaying],
    number: int,
    progress: Progress | None,
    *,
    skips_absent: bool,
) -> None:
    """Count a source for each image; one that holds symbols is read for each of them."""
    source = sources[number]
    is_of_addresses = source.info.addresses is Addresses.RUNTIME
    if isinstance(source, StackSource) and is_of_addresses and len(images) > 1:
        readings = [_tried(partial(image.reading, source), skips_absent) for image in images]
        there = [reading for reading in readings if isinstance(reading, SampleReading)]
        counted = iter(count_together(there, progress) if there else ())
        for image, reading in zip(images, readings, strict=True):
            image.counted.append(next(counted) if isinstance(reading, SampleReading) else reading)
        return
    for image in images:
        found = _tried(partial(image.count, source, progress), skips_absent)
        image.counted.append(found)


def _look_again(
    sources: Sequence[Source],
    images: Sequence[Replaying],
    number: int,
    progress: Progress | None,
) -> None:
    """Show a source to all images that look for something, and count it anew for biased ones."""
    readings = {image: image.again(number) for image in images}
    again = [(image, reading) for image, reading in readings.items() if reading is not None]
    is_of_addresses = sources[number].info.addresses is Addresses.RUNTIME
    for together in [again] if again and is_of_addresses else [[each] for each in again]:
        there = [reading for _, reading in together]
        if not any(reading.corrects for reading in there):
            look_together(there, progress)
            continue
        for (image, _), found in zip(together, count_together(there, progress), strict=True):
            image.counted[number] = found


def _tried(find: Callable[[], T], skips_absent: bool) -> T | InputError:
    try:
        return find()
    except InputError as error:
        if not skips_absent:
            raise
        return error


def progress_over_all(
    progress: Progress | None, sizes: Sequence[int], current: int
) -> Progress | None:
    """What takes the progress of one of several inputs, whose sizes in bytes are known.

    >>> heard = progress_over_all(lambda *told: print(*told), [300, 100], 1)
    >>> heard(10, 0.5), heard(10, None)
    10 0.875
    10 None
    (None, None)
    """
    if progress is None:
        return None
    whole, before, size = sum(sizes), sum(sizes[:current]), sizes[current]

    def over_all(samples: int, share: float | None) -> None:
        is_known = share is not None and size > 0
        progress(samples, (before + (share or 0) * size) / whole if is_known else None)

    return over_all


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
    has_chains = any(source.info.has_call_chains for source in sources)
    if not (has_chains and compat.follows(LEAF_DROPS_SAMPLE)):
        return facts
    debug, by_probes = DebugInfo.open(program.image), options.uses_probes
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
    return CodeBranches(table.address, table.target, table.has_target)


def damage_of(source: Source) -> Iterator[str]:
    """What a source lost, as far as it was read; damage is a doubt."""
    return (type(reason)(f"{n:,} {reason}") for reason, n in source.health().items() if n)


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
    """What was repaired in laying counts over the code, and what the counts seem to be of."""
    if (doubt := unlogged(flow)) is not None:
        yield doubt
    fused = flow.tallies[FUSED]
    if fused:
        yield (
            f"{fused:,} branches were recorded at the compare before them (AMD branch fusion) and "
            "moved to where they are"
        )
