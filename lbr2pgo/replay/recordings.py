"""The first half of every road: recordings opened, read once or twice, and laid over programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from lbr2pgo.counting.count import count_together, look_together
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.program.program import Program
from lbr2pgo.replay.chosen_phase import with_phase
from lbr2pgo.replay.recorded_program import program_of
from lbr2pgo.replay.replayed import Asks, Replayed
from lbr2pgo.replay.replaying import MakeReplaying, Neighbour, ReadingOptions, Replaying
from lbr2pgo.sources.base import Addresses, Source, StackSource
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.sources.series import open_recordings, size_of
from lbr2pgo.support import headway
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings

T = TypeVar("T")


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
    with timings.stage("open the inputs", sum(map(size_of, inputs.profiles))):
        with headway.heard_by(progress):
            recordings = open_recordings(inputs.profiles)
        sources = [each.source for each in recordings]
        binary, said = program_of(inputs.binary, sources, build_id=inputs.counting.build_id)
        program = Program.open(binary)
        notes = (*repetitions(inputs.profiles), *said)
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

    There is a second one where a bias has to be corrected, or something is looked for, and one
    before where a phase is asked for. With
    `skips_absent` a source that does not show an image has no counts of it, and that is a
    note; else it is an InputError.
    """
    options, timings = options or ReadingOptions(), timings or Timings()
    names = names or [source.info.path for source in sources]
    replaying, sizes = replaying or Replaying, [size_of(name) for name in names]
    if options.counting.choice.phase is not None:
        with timings.stage("find phases", sum(sizes)):
            options = with_phase(options, sources, programs[0], replaying, progress)
    images = [replaying(program, options, sources, beside) for program in programs]

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
        with timings.stage("plan the second reading"):
            for image, each in zip(images, found, strict=True):
                image.look = asks(each)
    if is_biased or any(image.look for image in images):
        read("look at the samples again", partial(_look_again, sources, images))
    found = laid() if is_biased else found
    return [image.with_told(each) for image, each in zip(images, found, strict=True)]


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
