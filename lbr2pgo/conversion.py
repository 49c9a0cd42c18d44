"""The whole road: profiles and an ELF file in, every wanted output in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lbr2pgo.counting.count import Counted, CountingOptions, Progress, count, filter_names, mode_of
from lbr2pgo.counting.find_image import refuse_other_machine
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts, merge
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.replay.fusion import FUSED
from lbr2pgo.replay.replay import Flow, ReplayOptions, replay
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source, SourceInfo, StackSource
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.background import Background
from lbr2pgo.support.errors import InputError, Lbr2pgoError, OutputError
from lbr2pgo.support.output import is_replaced, refuse_overwriting
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable

LLVM_PROFGEN, PERF2BOLT = "llvm-profgen", "perf2bolt"


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """What to read and what to write; paths of outputs that are None are not written."""

    profiles: tuple[Path, ...]
    binary: Path
    llvm: Path | None = None
    llvm_format: Literal["text", "extbinary"] = "text"
    md5_names: bool = False
    """Store hashes of names (extbinary only)."""
    symbol_list: bool = False
    """Store the names of all functions (extbinary only)."""
    fdata: Path | None = None
    preaggregated: Path | None = None
    counts: Path | None = None
    counting: CountingOptions = field(default_factory=CountingOptions)
    strict: bool = False
    compat: frozenset[str] = frozenset()
    """Tools (LLVM_PROFGEN, PERF2BOLT) whose numbers to give even where we know better."""

    def __post_init__(self) -> None:
        if not self.profiles:
            raise InputError("no profile was given", cure="Name at least one.")
        if (self.md5_names or self.symbol_list) and self.llvm_format != "extbinary":
            raise InputError(
                "the text format holds neither hashed names nor a symbol list",
                cure="Add --llvm-format extbinary.",
            )
        refuse_overwriting(self.outputs, (*self.profiles, self.binary))

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every path to be written."""
        every = (self.llvm, self.fdata, self.preaggregated, self.counts)
        return tuple(path for path in every if path is not None)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was done, what was lost on the way, and what had to be assumed."""

    counts: BranchCounts
    flow: Flow
    tallies: Mapping[str, int]
    """See `waterfall.rows`."""
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    written: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Profiles counted and laid over their binary, before anything is written."""

    program: Program
    counts: BranchCounts
    flow: Flow
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    filters: tuple[str, ...] = ()
    """Why some recordings show single branches and not what ran between them."""


class IncompleteError(OutputError):
    """An output was not written; others may have been."""

    def __init__(
        self, what: str, tallies: Mapping[str, int], notes: Sequence[str], cure: str | None = None,
        where: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what, cure=cure, where=where)
        self.tallies = tallies
        """As those of a `Conversion`, as far as it came."""
        self.notes = tuple(notes)


class EmptyProfileError(IncompleteError):
    """Nothing is left to write; `tallies` say where it went."""

    def __init__(
        self, tallies: Mapping[str, int], notes: Sequence[str] = (), what: str | None = None
    ) -> None:
        row = next((row for row in waterfall.rows(tallies) if not row.count), None)
        if row is not None:
            step = row.step
            what = f"the profile would be empty: no {step.unit} left at the step “{step.title}”"
        cure = "See what the profile holds with `lbr2pgo dump`."
        if row is not None and row.losses:
            reason, _ = row.losses[0]
            cure = f"{reason.title}: {reason.cure}."
        super().__init__(what or "no count is left to write", tallies, notes, cure)


def convert(
    options: ConvertOptions,
    progress: Progress | None = None,
    timings: Timings | None = None,
    image: Callable[[], Image] | None = None,
) -> Conversion:
    """Read, count, replay and write.

    `image` is the binary if opening it has begun (`Image.opening`).
    Outputs that can be written are, even if another one can't be: its error is raised after.
    Raises InputError, IncompleteError, and EmptyProfileError instead of writing an empty profile.
    """
    timings = timings or Timings()
    found = read_and_replay(options, progress, timings, image)
    run = _Run(options, found, timings)
    tallies = waterfall.merge(found.flow.tallies, *run.write_all())
    waterfall.check(tallies)
    notes = (*found.notes, *run.notes)
    if run.problems:
        raise _incomplete(run.problems[0], tallies, notes)
    return Conversion(found.counts, found.flow, tallies, notes, tuple(run.written))


def read_and_replay(
    options: ConvertOptions,
    progress: Progress | None = None,
    timings: Timings | None = None,
    image: Callable[[], Image] | None = None,
) -> Replayed:
    """The first half of `convert`: everything but writing.

    Raises InputError, and EmptyProfileError where the inputs hold nothing of the binary.
    """
    timings = timings or Timings()
    with timings.stage("open the inputs"):
        opening = image or Image.opening(options.binary)
        program, sources = open_inputs(options.profiles, opening)
    counted, notes, filters = _count_all(options, program, sources, progress, timings)
    counts = _merged([each.counts for each in counted])
    if not len(counts):
        raise EmptyProfileError(counts.tallies, notes, "the inputs hold no counts of this binary")
    with timings.stage("replay"):
        flow = replay(counts, program, _replay_options(options))
    return Replayed(program, flow.counts, flow, (*notes, *replay_notes(flow)), tuple(filters))


def open_inputs(
    profiles: Sequence[Path], image: Callable[[], Image]
) -> tuple[Program, list[Source]]:
    """Open them all, beside the binary (`Image.opening`); raises InputError for what can't be."""
    sources = [open_source(path) for path in profiles]
    for source in sources:
        if isinstance(source, StackSource):
            source.space_events()  # counting needs them first, and they need no binary
    return Program(image()), sources


def _incomplete(
    problem: Lbr2pgoError, tallies: Mapping[str, int], notes: Sequence[str]
) -> IncompleteError:
    if isinstance(problem, EmptyProfileError):
        return EmptyProfileError(tallies, notes, problem.what)
    return IncompleteError(problem.what, tallies, notes, problem.cure, problem.where)


def _merged(counts: Sequence[BranchCounts]) -> BranchCounts:
    try:
        return merge(counts)
    except ValueError as error:
        raise InputError(
            f"the profiles do not go together: {error}",
            cure="Convert the profiles of each build with the binary of that build.",
        ) from error


def _replay_options(options: ConvertOptions) -> ReplayOptions:
    return ReplayOptions(strict=options.strict, as_llvm=LLVM_PROFGEN in options.compat)


def _count_all(
    options: ConvertOptions,
    program: Program,
    sources: Sequence[Source],
    progress: Progress | None,
    timings: Timings,
) -> tuple[list[Counted], list[str], list[str]]:
    """What each profile holds; notes on how it was read; notes on what it leaves out."""
    counted, notes, filters = [], [], []
    for path, source in zip(options.profiles, sources, strict=True):
        with timings.stage("read and count", _size(path)):
            refuse_other_machine(program.image.layout, source.info.machine, where=source.info.path)
            chosen = _counting_options(options, program, source.info.has_call_stacks)
            found = count(source, program.image.layout, chosen, program.address_of, progress)
        counted.append(found)
        left_out = [f"{path}: {note}" for note in filter_notes(source.info)]
        filters += left_out
        notes += [f"{path}: {note}" for note in reading_notes(found, source.health())] + left_out
    return counted, notes, filters


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def reading_notes(counted: Counted, health: Mapping[str, int]) -> Iterator[str]:
    """What had to be assumed, and what a file had lost, for the user's eyes."""
    if counted.match is not None and counted.match.assumption:
        yield counted.match.assumption
    for reason, number in health.items():
        if number:
            yield f"{number:,} {reason}"


def filter_notes(info: SourceInfo) -> Iterator[str]:
    """Of which events only single branches count, and why."""
    from lbr2pgo.native.traces import BRANCHES_ONLY

    for event in info.events:
        if mode_of(event) == BRANCHES_ONLY:
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


def _counting_options(
    options: ConvertOptions, program: Program, has_call_stacks: bool
) -> CountingOptions:
    """Where llvm-profgen would drop samples by their call stack, so does its compatible mode."""
    if LLVM_PROFGEN not in options.compat:
        return options.counting
    counting = replace(options.counting, as_llvm=True)
    if not has_call_stacks:
        return counting
    from lbr2pgo.profiles.llvm.prologues import in_prologue_or_epilogue

    debug = DebugInfo.open(program.image)
    return replace(
        counting, skips_leaf=lambda leaves: in_prologue_or_epilogue(leaves, program, debug)
    )


class _Run:
    """Writes the outputs of one conversion, one after the other."""

    def __init__(self, options: ConvertOptions, found: Replayed, timings: Timings) -> None:
        self.options, self.program, self.filters = options, found.program, found.filters
        self.counts, self.flow, self.timings = found.counts, found.flow, timings
        self.written: list[Path] = []
        self.problems: list[Lbr2pgoError] = []
        self.notes: list[str] = []
        self._fdata: Background[tuple[Mapping[str, int], dict[str, float]]] | None = None

    def write_all(self) -> list[Mapping[str, int]]:
        """Write every wanted output; what can't be written goes to `problems`."""
        outputs = (
            (self.options.counts, self._write_counts),
            (self.options.preaggregated, self._write_preaggregated),
            (self.options.llvm, self._write_llvm),
            (self.options.fdata, self._write_fdata),
        )
        fdata, llvm = self.options.fdata, self.options.llvm
        if fdata is not None and llvm is not None and is_replaced(fdata):
            # The two need nothing of each other, and take about as long. What fails there is tried
            # again here.
            self._fdata = Background(self._make_fdata_apart, fdata)
        tallies = []
        for path, write in outputs:
            try:
                if path is not None:
                    self.program.image.let_go()  # the code that the stage before looked at
                    tallies.append(write(path))
                    self.written.append(path)
            except Lbr2pgoError as problem:
                self.problems.append(problem)
                if isinstance(problem, EmptyProfileError):
                    tallies.append(problem.tallies)
        return tallies

    def _write_counts(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles import saved_counts

        with self.timings.stage("write counts"):
            saved_counts.write(self.counts, path)
        return {"traces_written": len(self.counts)}

    def _write_preaggregated(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles import preaggregated

        with self.timings.stage("write pre-aggregated"):
            preaggregated.write(self.counts, path)
        return {} if self.options.counts else {"traces_written": len(self.counts)}

    def _write_fdata(self, path: Path) -> Mapping[str, int]:
        if self._fdata is None:
            return self._make_fdata(path, self.timings)
        with self.timings.stage("wait for fdata"):
            tallies, self.timings.beside = self._fdata.result()
        return tallies

    def _make_fdata_apart(self, path: Path) -> tuple[Mapping[str, int], dict[str, float]]:
        timings = Timings()
        return self._make_fdata(path, timings), timings.seconds

    def _make_fdata(self, path: Path, timings: Timings) -> Mapping[str, int]:
        from lbr2pgo.profiles.bolt import fdata
        from lbr2pgo.profiles.bolt.derive_fdata import BoltOptions, fdata_from_counts

        options = BoltOptions(compat=PERF2BOLT in self.options.compat)
        with timings.stage("derive fdata"):
            rows, tallies = fdata_from_counts(self.counts, self.program, options)
        if rows.branches is None or not len(rows.branches):
            raise EmptyProfileError(tallies, what="no branch is in a function that BOLT knows")
        with timings.stage("write fdata"):
            fdata.write(rows, path)
        return tallies

    def _write_llvm(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles.llvm.correlate import profile_table

        if self.filters and not len(self.flow.judged.runs):
            raise OutputError(
                "no sample profile was written: without what ran between branches, clang would "
                f"take all code for cold ({self.filters[0]})",
                cure="Record all branches: perf record -b (without a filter by type).",
            )
        debug = DebugInfo.open(self.program.image)
        if not debug.present:
            raise OutputError(f"no sample profile was written: {debug.missing_reason}")
        with self.timings.stage("correlate"):
            as_llvm = LLVM_PROFGEN in self.options.compat
            table, located = profile_table(self.flow, self.program, debug, as_llvm=as_llvm)
        tallies = self._located_tallies(located)
        if not len(table):
            raise EmptyProfileError(tallies, what="no function with debug information ran")
        with self.timings.stage("write sample profile"):
            self._write_table(table, debug, path)
        self.notes += [f"debug information: {n:,} {why}" for why, n in debug.health().items() if n]
        return tallies

    def _write_table(self, table: ProfileTable, debug: DebugInfo, path: Path) -> None:
        if self.options.llvm_format == "text":
            from lbr2pgo.profiles.llvm import text_table as llvm_text_table

            llvm_text_table.write(table, path)
            return
        from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
        from lbr2pgo.profiles.llvm.correlate import symbol_list

        profile = table.tree()
        if self.options.symbol_list:
            profile.symbols = symbol_list(debug)
        chosen = llvm_extbinary.Options(md5_names=self.options.md5_names)
        llvm_extbinary.write(profile, path, chosen)

    def _located_tallies(self, located: Bools) -> Mapping[str, int]:
        judged = self.flow.judged
        in_function = judged.valid & (self.program.functions.containing(judged.runs.start) >= 0)
        found = int(judged.runs.count[in_function & located].sum())
        lost = int(judged.runs.count[in_function & ~located].sum())
        return {"runs_located": found, "runs_located/no_location": lost, "llvm_runs": found}
