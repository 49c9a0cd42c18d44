"""The whole road: recordings and an ELF file in, every wanted output in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.profiles.base import Output, Written
from lbr2pgo.profiles.registry import steps
from lbr2pgo.profiles.work import Work
from lbr2pgo.replay.recordings import Inputs, read_and_replay, replay_images
from lbr2pgo.replay.replay import Flow
from lbr2pgo.replay.replayed import Asks, Replayed
from lbr2pgo.replay.replaying import MakeReplaying, Replaying
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, Lbr2pgoError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.output import may_wait_for_reader, refuse_overwriting, refuse_unwritable
from lbr2pgo.support.threads import both
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.evidence.second_look import SecondLook


@dataclass(frozen=True, slots=True)
class ConvertOptions(Inputs):
    """What to read and what to write."""

    outputs: tuple[Output, ...] = ()
    """What to write, in this order; `lbr2pgo.output` makes them."""
    optional: tuple[Output, ...] = ()
    """What to write after them if the program and the recording allow it; else a note says why."""
    no_lbr: bool = False
    """Infer branches from where samples interrupted the program, whatever stacks they hold."""
    infer: bool = False
    """Infer what ran between recorded branches, where a filter or the recorder kept some alone;
    whole stacks tell it themselves."""
    force: bool = False
    """Infer them from however few samples, and believe a recording that seems to be filtered."""

    def __post_init__(self) -> None:
        Inputs.__post_init__(self)
        if self.no_lbr and self.infer:
            raise InputError(
                "--no-lbr leaves out the branches that --infer starts from",
                cure="Leave out one of them.",
            )
        refuse_overwriting(self.paths, self.paths_read)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path to be written."""
        outputs = (*self.outputs, *self.optional)
        return tuple(path for output in outputs for path in output.paths)

    @property
    def uses_probes(self) -> bool:
        """Whether any output looks at pseudo probes, or none of them says that it doesn't."""
        return {each.uses_probes for each in self.outputs} - {None} != {False}


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was done, what was lost on the way, and what had to be assumed."""

    counts: BranchCounts
    flow: Flow
    tallies: Mapping[str, int]
    """See `lbr2pgo.waterfall_rows`."""
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    written: tuple[Path, ...]
    binary: Path
    """The program that was recorded."""

    def __repr__(self) -> str:
        written = ", ".join(map(str, self.written)) or "nothing"
        branches = counted(self.counts.branch_total(), "branch")
        return f"<Conversion of {branches} of {self.binary}: wrote {written}>"


def convert(
    options: ConvertOptions, progress: Progress | None = None, timings: Timings | None = None
) -> Conversion:
    """Read, count, replay and write.

    Outputs that can be made are written, even if another one can't be: its error is raised after.
    Paths that can't be written are an error before anything is read.
    Raises InputError, IncompleteError, and EmptyProfileError instead of writing an empty profile.
    """
    timings = timings or Timings()
    refuse_unwritable(options.paths)
    found = read(options, progress, timings, look_for((*options.outputs, *options.optional)))
    if options.paths and not options.force:
        found.refuse_doubtful()
    return write_outputs(found, options.outputs, timings, options.optional)


def write_outputs(
    found: Replayed,
    outputs: Sequence[Output],
    timings: Timings,
    optional: Sequence[Output] = (),
) -> Conversion:
    """The second half of `convert`: every output of what was read, and what became of it all.

    `optional` as in `ConvertOptions`.
    """
    every = (*outputs, *optional)
    paths = [path for output in every for path in output.paths]
    refuse_overwriting(paths, [found.program.image.path])
    found.refuse_nothing()
    work = Work(found, timings)
    done = _write(outputs, optional, work)
    tallies = {**found.flow.tallies, **done.tallies}
    waterfall.check(tallies, steps())
    notes = tuple(dict.fromkeys((*done.notes, *found.notes)))
    if done.problems:
        kept = (f"{path} was written all the same" for path in done.written)
        raise _incomplete(done.problems, tallies, (*notes, *kept))
    binary = Path(found.program.image.path)
    return Conversion(found.counts, found.flow, tallies, notes, tuple(done.written), binary)


def look_for(outputs: Sequence[Output]) -> Asks:
    """All that outputs are going to ask of the samples, to be found in one reading."""

    def look(found: Replayed) -> SecondLook | None:
        work = Work(found, Timings())
        wanted = dict.fromkeys(chain(*(each.findings(work) for each in outputs)))
        if not wanted:
            return None
        from lbr2pgo.evidence.second_look import SecondLook

        return SecondLook(found, wanted)

    return look


def read(
    options: ConvertOptions,
    progress: Progress | None = None,
    timings: Timings | None = None,
    asks: Asks | None = None,
) -> Replayed:
    """The first half of `convert`: what the recordings come to, recorded or inferred."""
    if options.infer and are_fdata(options.profiles):
        return _read_stale(options, timings)
    return read_and_replay(options, progress, timings, _replaying(options), asks)


def _replaying(options: ConvertOptions) -> MakeReplaying:
    """What is done between the recordings and the outputs."""
    if not (options.no_lbr or options.infer):
        return Replaying
    from lbr2pgo.replay.inference.inferred_recordings import ReplayingFlow, ReplayingInstructions

    return ReplayingInstructions if options.no_lbr else ReplayingFlow


def are_fdata(paths: Sequence[Path]) -> bool:
    """Whether files are fdata: profiles that were written, and no recordings."""
    from lbr2pgo.profiles.base import HEAD_SIZE
    from lbr2pgo.profiles.bolt.fdata.fdata_text import is_fdata

    def head(path: Path) -> bytes:
        with path.open("rb") as stream:
            return stream.read(HEAD_SIZE)

    return all(path.is_file() and is_fdata(head(path)) for path in paths)


def _read_stale(options: ConvertOptions, timings: Timings | None) -> Replayed:
    """Fdata of an earlier build, laid over this one."""
    from lbr2pgo.profiles.bolt.fdata.stale_fdata import stale_counts
    from lbr2pgo.profiles.registry import read_written
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.inference.from_branches import PartialFunctions
    from lbr2pgo.replay.inference.inferred_recordings import ReplayingStale

    path, *others = options.profiles
    if options.binary is None or others:
        raise InputError(
            "stale fdata is one file, for one binary",
            where=str(path),
            cure="Give the build that it shall serve (--binary), and merge files by merge-fdata.",
        )
    program = Program.open(options.binary)
    written = read_written(path)
    assert written is not None  # see `are_fdata`
    stale = stale_counts(written.belonging(program, most_stale=1.0).content, program)
    replaying = partial(ReplayingStale, stale.counts, PartialFunctions(stale.partial))
    (found,) = replay_images((), [program], options, timings=timings, replaying=replaying)
    return found


@dataclass(slots=True)
class _Done:
    """What became of the outputs."""

    written: list[Path] = field(default_factory=list)
    problems: list[Lbr2pgoError] = field(default_factory=list)
    tallies: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _write(outputs: Sequence[Output], optional: Sequence[Output], work: Work) -> _Done:
    """Write all of them; one that can't be written keeps no other from it."""
    done, every = _Done(), (*outputs, *optional)
    for output, said in zip(every, _each(every, work), strict=True):
        if isinstance(said, Written):
            done.written += output.paths
            done.tallies.update(said.tallies)
            done.notes += said.notes
            continue
        if output in optional:
            done.notes.append(f"{output.paths[0]} was not written: {said.headline}")
        else:
            done.problems.append(said)
        if isinstance(said, EmptyProfileError):
            done.tallies.update(said.tallies)
    return done


_Outcome = Written | Lbr2pgoError


def _each(outputs: Sequence[Output], work: Work) -> Iterator[_Outcome]:
    """What becomes of each output: it is written while the next one is made."""
    if not outputs:
        return
    write = _made(outputs[0], work)
    for output in outputs[1:]:
        write, said = both(partial(_made, output, work), write)
        yield said
    yield write()


def _made(output: Output, work: Work) -> Callable[[], _Outcome]:
    """Make an output. What it gives writes it, and says what became of it.

    What may wait for a reader is written here, in the main thread, which Ctrl-C reaches.
    """
    try:
        write = partial(_tried, output.made(work))
    except Lbr2pgoError as problem:
        outcome: _Outcome = problem
        return lambda: outcome
    if not any(map(may_wait_for_reader, output.paths)):
        return write
    outcome = write()
    return lambda: outcome


def _tried(write: Callable[[], Written]) -> _Outcome:
    try:
        return write()
    except Lbr2pgoError as problem:
        return problem


def _incomplete(
    problems: Sequence[Lbr2pgoError], tallies: Mapping[str, int], notes: Sequence[str]
) -> IncompleteError:
    """The first problem, with the others among the notes."""
    first, *others = problems
    notes = (*notes, *(problem.headline for problem in others))
    if isinstance(first, EmptyProfileError):
        return EmptyProfileError(tallies, notes, first.what, steps())
    return IncompleteError(first.what, tallies, notes, first.cure, first.where)
