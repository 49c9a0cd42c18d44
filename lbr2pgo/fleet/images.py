"""Every image of recordings converted in one pass: each recording is read once.

What is written of an image is what a conversion of it alone writes, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from lbr2pgo.conversion import Conversion, look_for, write_outputs
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.profiles.base import Output
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.program import Program
from lbr2pgo.replay.chosen_phase import with_phase
from lbr2pgo.replay.recorded_program import program_of, recorded_images, recorded_program
from lbr2pgo.replay.recordings import replay_images
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.replay.replaying import ReadingOptions, Replaying
from lbr2pgo.sources.base import Source
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.sources.series import open_recordings, size_of
from lbr2pgo.support import headway
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, Lbr2pgoError
from lbr2pgo.support.file_names import BUILD_ID, NAME, NO_BUILD_ID, fields_of, filled
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable
from lbr2pgo.support.threads import in_order, threads
from lbr2pgo.support.timings import Timings


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesOptions(ReadingOptions):
    """What to read and what to write of each image."""

    profiles: tuple[Path, ...]
    binaries: tuple[Path, ...] = ()
    names: Mapping[Path, str] = field(default_factory=dict)
    """What binaries are called, if not as their files are."""
    all_images: bool = False
    """Take every mapped file that is found, too."""
    skips_absent: bool = False
    """A binary that a recording does not show has no counts of it, instead of being an error."""
    places: ImagePlaces = field(default_factory=ImagePlaces)
    outputs: tuple[Output, ...] = ()
    """`{name}` and `{build_id}` in their paths stand for each image's."""
    force: bool = False
    """Believe a recording that seems to be filtered."""

    def named(self) -> dict[Path, str]:
        """Each binary, and what it is called."""
        return {path.resolve(): self.names.get(path, path.name) for path in self.binaries}

    def __post_init__(self) -> None:
        if self.counting.build_id is not None:
            what = "--build-id is of one binary, and there are several"
            raise InputError(what, cure="Leave it out, or give one --binary.")
        for output in self.outputs:
            for path in output.paths:
                if not fields_of(path):
                    raise InputError(
                        f"{path} would be written for each of several images",
                        cure="Put {name} or {build_id} in it, in quotes: '{name}.prof'.",
                    )


@dataclass(frozen=True, slots=True)
class ConvertedImage:
    """What became of one image."""

    name: str
    """As the recording calls it, without folders."""
    binary: Path
    build_id: str | None
    outputs: tuple[Output, ...]
    result: Conversion | IncompleteError

    @property
    def is_complete(self) -> bool:
        """Whether every output was written."""
        return isinstance(self.result, Conversion)

    @property
    def has_branches(self) -> bool:
        """Whether samples show any branch of it."""
        return self.tally("branches_in_image") > 0

    def tally(self, key: str) -> int:
        """A number of its waterfall; 0 where the step was not taken."""
        return self.result.tallies.get(key, 0)

    def __repr__(self) -> str:
        return f"<ConvertedImage {self.name}: {self.result!r}>"


@dataclass(frozen=True, slots=True)
class Images:
    """What became of all of them."""

    images: tuple[ConvertedImage, ...]
    notes: tuple[str, ...]
    """Of files that come twice, were built anew since, or were not found."""

    def __repr__(self) -> str:
        names = ", ".join(image.name for image in self.images if image.is_complete)
        return f"<Images: converted {names or 'none'} of {len(self.images)}>"


def refuse_one_image(**given: bool) -> None:
    """Raise InputError for an option, as its keyword is called, that is for one image alone."""
    for name, is_given in given.items():
        if is_given:
            word = f"--{name.replace('_', '-')}"
            raise InputError(f"{word} is for one image", cure="Give one --binary.")


def convert_images(
    options: ImagesOptions, progress: Progress | None = None, timings: Timings | None = None
) -> Images:
    """Read once; count, replay and write each image.

    An image of which nothing is counted or can be written is told among the others. Raises
    InputError for what can't be read, and for a binary that was not recorded; OutputError for a
    path that can't be written.
    """
    timings = timings or Timings()
    with timings.stage("open the inputs", sum(map(size_of, options.profiles))):
        with headway.heard_by(progress):
            recordings = open_recordings(options.profiles)
        sources = [each.source for each in recordings]
        mapped = list(recorded_images(sources, options.places)) if options.all_images else []
        # A store by build-id has other names than those that were recorded.
        named = {each.found.resolve(): each.name for each in mapped if each.found is not None}
        given, said = _recorded_builds(options, sources)
        binaries = {**given, **named}
        programs = [Program.open(path) for path in binaries]
    if not programs:
        raise InputError("no mapped file was found", cure="Name a --binary, or a --sysroot.")
    outputs = [
        _outputs_of(program, name, options.outputs)
        for program, name in zip(programs, binaries.values(), strict=True)
    ]
    paths = [path for each in outputs for output in each for path in output.paths]
    refuse_overwriting(paths, [*options.profiles, *binaries])
    refuse_unwritable(paths)
    if options.counting.choice.phase is not None:  # of the program, whatever else is converted
        main = next(iter(given), None) or recorded_program(sources, options.places)
        options = with_phase(options, sources, Program.open(main), Replaying, progress)
    names = [each.name for each in recordings]
    replayed = replay_images(
        sources, programs, options, progress, timings, names=names,
        skips_absent=options.all_images or options.skips_absent,
        asks=lambda found: look_for(outputs[programs.index(found.program)])(found),
    )  # fmt: skip

    def convert(found: Replayed, name: str, outputs: Sequence[Output]) -> ConvertedImage:
        return _converted(found, name, outputs, force=options.force)

    work = zip(replayed, binaries.values(), outputs, strict=True)
    with timings.stage("write the images"):
        done = tuple(in_order(work, [convert] * threads()))
    missing = [f"not found: {each}" for each in mapped if each.found is None]
    return Images(done, (*repetitions(options.profiles), *said, *missing))


def _recorded_builds(
    options: ImagesOptions, sources: Sequence[Source]
) -> tuple[dict[Path, str], list[str]]:
    """The binaries that are named, or their recorded builds, by their names; and what to say."""
    builds, said = dict[Path, str](), list[str]()
    for path, name in options.named().items():
        found, notes = program_of(path, sources)
        builds[found.resolve()] = name
        said += notes
    return builds, said


def _outputs_of(program: Program, name: str, outputs: Sequence[Output]) -> tuple[Output, ...]:
    values = {NAME: name, BUILD_ID: program.image.build_id or NO_BUILD_ID}

    def of_image(output: Output) -> Output:
        named = {option.name: getattr(output, option.name) for option in output.options()}
        paths = {name: filled(p, values) for name, p in named.items() if isinstance(p, Path)}
        return replace(output, **paths)

    return tuple(map(of_image, outputs))


def _converted(
    found: Replayed, name: str, outputs: Sequence[Output], *, force: bool
) -> ConvertedImage:
    image = found.program.image
    result: Conversion | IncompleteError
    try:
        if outputs and not force:
            found.refuse_doubtful()
        result = write_outputs(found, outputs, Timings())
    except IncompleteError as error:
        result = error
    except Lbr2pgoError as error:
        result = IncompleteError(error.what, found.flow.tallies, found.notes, error.cure)
    return ConvertedImage(name, Path(image.path), image.build_id, tuple(outputs), result)
