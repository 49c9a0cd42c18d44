"""Many files added up: counts and recordings build by build, profiles by their own rules.

Files are gone through once, and each is dropped when it is added: memory grows with distinct
traces, not with files. What comes out of two files is what comes of converting both at once, byte
for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.count_sums import CountSums
from lbr2pgo.profiles.counts.format import (
    is_parquet,
    origin_of,
    refuse_without_parquet,
    write_counts,
)
from lbr2pgo.profiles.reader import Merging, Reader
from lbr2pgo.profiles.registry import reader_of
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recorded_program import program_of
from lbr2pgo.replay.recordings import progress_over_all, replay_sources
from lbr2pgo.replay.replaying import ReadingOptions
from lbr2pgo.sources.base import BuildSource, Source, SourceInfo
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.sources.series import Recording, open_series, series_of, size_of
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.file_names import BUILD_ID, NO_BUILD_ID, fields_of, filled
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable
from lbr2pgo.support.sums import TooManyError
from lbr2pgo.support.threads import in_order, threads

if TYPE_CHECKING:
    from lbr2pgo.model.count_sums import Weight


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """What to add up, and where the sum goes."""

    inputs: tuple[Path, ...]
    output: Path
    """`{build_id}` in its name stands for each build's; counts in Parquet need none."""
    weights: Mapping[Path, Weight] = field(default_factory=dict)
    """What some inputs are multiplied by; all others weigh 1."""
    binary: Path | None = None
    """The program of recordings, if not the one that they name; profiles must belong to it."""
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    builds: tuple[str, ...] = ()
    """How the build-ids begin that are added up, in lower-case hex; all without any."""

    def __post_init__(self) -> None:
        astray = [str(path) for path in self.weights if path not in self.inputs]
        if astray:
            cure = "Name it among the inputs too."
            raise InputError(f"{astray[0]} has a weight, but is no input", cure=cure)
        read = (*self.inputs, *([] if self.binary is None else [self.binary]))
        refuse_overwriting([self.output], read)
        refuse_without_parquet(self.output)

    def wants(self, build_id: str | None) -> bool:
        """Whether counts of a build are added up."""
        return not self.builds or (build_id or "").startswith(self.builds)

    def weight(self, path: Path) -> Weight:
        """What an input is multiplied by."""
        return self.weights.get(path, 1)


@dataclass(frozen=True, slots=True)
class BuildCounts:
    """The sum of one build's counts."""

    counts: BranchCounts
    files: int
    """How many inputs had some."""
    written: Path


@dataclass(frozen=True, slots=True)
class Merge:
    """What was added up."""

    written: tuple[Path, ...]
    builds: tuple[BuildCounts, ...]
    """Of counts and recordings; ordered by build-id."""
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""


def merge_files(options: MergeOptions, progress: Progress | None = None) -> Merge:
    """Add files up: profiles of one kind, or any mix of counts and recordings.

    Raises InputError for what can't be read or does not go together, and OutputError.
    """
    readers = [None if path.is_dir() else reader_of(path) for path in options.inputs]
    for path, reader in zip(options.inputs, readers, strict=True):
        if reader is not None and reader.merging is None:
            cure = "Merge the recordings, or their counts, and convert these."
            raise InputError(f"{reader.kind} don't add up", where=str(path), cure=cure)
    known = [reader for reader in readers if reader is not None]
    if known and len(known) < len(readers):
        raise _apart(options.inputs, readers)
    if known:
        done = _merge_profiles(options, known, progress)
    else:
        if not fields_of(options.output):
            refuse_unwritable([options.output])
        done = _merge_counts(options, progress)
    return replace(done, notes=(*repetitions(options.inputs), *done.notes))


def _apart(inputs: Sequence[Path], readers: Sequence[Reader[Any] | None]) -> InputError:
    kinds = [reader.kind if reader else "counts or recordings" for reader in readers]
    other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
    return InputError(
        f"{inputs[0]} holds {kinds[0]}, {inputs[other]} holds {kinds[other]}",
        cure="Merge each kind for itself: only counts and recordings add up with each other.",
    )


def _merge_profiles(
    options: MergeOptions, readers: Sequence[Reader[Any]], progress: Progress | None
) -> Merge:
    rules = [reader.merging for reader in readers if reader.merging is not None]
    if len({reader.kind for reader in readers}) > 1:
        raise _apart(options.inputs, readers)
    for path, weight in options.weights.items():
        if weight.denominator != 1:
            what = f"{weight} is no whole number, which weights of profiles are"
            raise InputError(what, where=str(path), cure="Multiply all weights, or merge counts.")
    refuse_unwritable([options.output])
    reading, sizes = "", [size_of(str(path)) for path in options.inputs]
    program = None if options.binary is None else Program.open(options.binary)

    def contents() -> Iterator[tuple[Any, int]]:
        nonlocal reading
        for number, (path, reader) in enumerate(zip(options.inputs, readers, strict=True)):
            reading = str(path)
            content = reader.read(path)
            if program is not None:
                reader.belonging(content, program, reading)
            yield content, int(options.weight(path))
            _tell_end(progress, sizes, number)

    rule = _form_of_all(rules)
    try:
        merged = rule.add(contents())
    except InputError as error:
        raise InputError(error.what, where=error.where or reading, cure=error.cure) from error
    rule.write(merged.content, options.output)
    return Merge((options.output,), (), merged.notes)


def _tell_end(progress: Progress | None, sizes: Sequence[int], number: int) -> None:
    """Say that one of the inputs, whose sizes in bytes are known, is added."""
    over_all = progress_over_all(progress, sizes, number)
    if over_all is not None:
        over_all(0, 1.0)


def _form_of_all(rules: Sequence[Merging[Any]]) -> Merging[Any]:
    """That of the inputs; where they differ that which comes last, the plainest."""
    return next((rule for rule in rules if rule is not rules[0]), rules[0])


@dataclass(slots=True)
class _Sums:
    """What was added up so far."""

    counts: CountSums = field(default_factory=CountSums)
    files: Counter[str | None] = field(default_factory=Counter)
    infos: list[SourceInfo] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, found: _Counted, weight: Weight) -> None:
        self.infos.append(found.info)
        self.notes += found.notes
        self.files.update({counts.build_id for counts, _ in found.builds})
        try:
            for counts, own in found.builds:
                self.counts.add(counts, own * weight)
        except TooManyError as error:
            raise TooManyError(name) from error


@dataclass(frozen=True, slots=True)
class _Counted:
    """The counts of one file."""

    info: SourceInfo
    builds: Sequence[tuple[BranchCounts, Weight]]
    notes: Sequence[str] = ()


def _merge_counts(options: MergeOptions, progress: Progress | None) -> Merge:
    sums, programs = _Sums(), _Programs(options)
    inputs = list(_alike(options))
    sizes = [sum(size_of(str(path)) for path in paths) for _, paths, _ in inputs]
    for number, opened in enumerate(in_order(inputs, [_open] * threads())):
        for recording, found, weight in opened:
            over_all = progress_over_all(progress, sizes, number)
            counted = found or programs.count(recording, over_all)
            wanted = [each for each in counted.builds if options.wants(each[0].build_id)]
            sums.add(recording.name, replace(counted, builds=wanted), weight)
        _tell_end(progress, sizes, number)
    builds = [counts for counts in sums.counts.builds() if len(counts)]
    if not builds:
        raise InputError("the inputs hold no counts", cure="See what is in one: lbr2pgo dump.")
    written = _write(options.output, builds, origin_of(info.details for info in sums.infos))
    made = zip(builds, written, strict=True)
    return Merge(
        tuple(dict.fromkeys(written)),
        tuple(BuildCounts(counts, sums.files[counts.build_id], path) for counts, path in made),
        tuple(sums.notes),
    )


def _alike(options: MergeOptions) -> Iterator[tuple[str, Sequence[Path], Weight]]:
    """Inputs with their weights; those of a series that weigh the same together."""
    for name, paths in series_of(options.inputs):
        weights = {options.weight(path) for path in paths}
        if len(weights) == 1:
            yield name, paths, weights.pop()
        else:
            yield from ((str(path), (path,), options.weight(path)) for path in paths)


def _open(
    name: str, paths: Sequence[Path], weight: Weight
) -> list[tuple[Recording, _Counted | None, Weight]]:
    """Files and, of those that hold counts, all of them: unpacking is what takes the time."""
    return [(each, _counts_in(each.source), weight) for each in open_series(name, paths)]


def _counts_in(source: Source) -> _Counted | None:
    if isinstance(source, BuildSource):
        return _Counted(source.info, tuple(source.builds()))
    return None


class _Programs:
    """Counts recordings, each of its own program; a program is opened once."""

    def __init__(self, options: MergeOptions) -> None:
        self._options = options
        self._open: dict[Path, Program] = {}

    def count(self, recording: Recording, progress: Progress | None) -> _Counted:
        source = recording.source
        given = self._options.reading.counting.build_id
        binary, said = program_of(self._options.binary, [source], build_id=given)
        if binary not in self._open:
            self._open[binary] = Program.open(binary)
        program, reading = self._open[binary], self._options.reading
        found = replay_sources([source], program, reading, progress, names=[recording.name])
        return _Counted(
            source.info,
            [(found.counts, 1)],
            (*(said if self._options.binary else ()), *found.notes),
        )


def _write(
    output: Path, builds: Sequence[BranchCounts], origin: Mapping[str, Sequence[str]]
) -> list[Path]:
    """Where each build went."""
    if BUILD_ID in fields_of(output):
        names = [filled(output, {BUILD_ID: each.build_id or NO_BUILD_ID}) for each in builds]
        refuse_unwritable(names)
        for counts, path in zip(builds, names, strict=True):
            write_counts([counts], path, origin)
        return names
    if len(builds) > 1 and not is_parquet(output):
        names_of = ", ".join(each.build_id or NO_BUILD_ID for each in builds)
        raise InputError(
            f"the inputs are of {len(builds)} builds ({names_of}), which one .npz does not hold",
            cure="Write Parquet (-o ALL.parquet), or a file each (-o '{build_id}.npz').",
        )
    write_counts(builds, output, origin)
    return [output] * len(builds)
