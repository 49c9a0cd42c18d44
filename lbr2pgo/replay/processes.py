"""Recordings laid over all images of their process that are found, not over the program alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from lbr2pgo.model.code_files import plain_build_id
from lbr2pgo.model.waterfall import counts_outside
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.jit.jit_program import JitProgram
from lbr2pgo.program.process import Part
from lbr2pgo.program.program import Program
from lbr2pgo.replay.jit import made_code
from lbr2pgo.replay.recorded_program import RecordedImage, program_of, recorded_images
from lbr2pgo.replay.recordings import Inputs, replay_sources
from lbr2pgo.replay.replayed import Asks, Replayed
from lbr2pgo.replay.replaying import Neighbour
from lbr2pgo.sources.base import Source
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.sources.series import open_recordings, size_of
from lbr2pgo.support import headway
from lbr2pgo.support.addresses import SLOT_SIZE
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings


@dataclass(frozen=True, slots=True)
class ProcessInputs(Inputs):
    """What to read, and which files beside the program may be parts of what ran."""

    binaries: tuple[Path, ...] = ()
    """Other programs or libraries that were recorded."""
    libraries: bool = True
    """Whether to take mapped files that nobody names, too."""
    places: ImagePlaces = field(default_factory=ImagePlaces)
    """Where to look for these."""
    jit: tuple[Path, ...] = ()
    """jitdump files and perf-PID.map of code that processes made, beside those that are found."""


def read_process(
    inputs: ProcessInputs,
    progress: Progress | None = None,
    timings: Timings | None = None,
    asks: Asks | None = None,
) -> Replayed:
    """Open recordings, their program and what its process mapped beside it; count, and replay.

    A file that nobody named is taken if its build-id is the recorded one or, without any, if it is
    in a given root. Raises InputError as `read_and_replay`, and for a named file that no process
    mapped.
    """
    timings = timings or Timings()
    size = sum(map(size_of, inputs.profiles))
    with timings.stage("open the inputs", size), headway.heard_by(progress):
        recordings = open_recordings(inputs.profiles)
    sources = [recording.source for recording in recordings]
    with timings.stage("open the process's files"):
        recorded = inputs.counting.build_id
        path, said = program_of(inputs.binary, sources, inputs.places, recorded)
        program = Program.open(path)
        mapped = list(recorded_images(sources, inputs.places))
        named = [(each, each.name) for each in inputs.binaries]
        found = [
            (each.found, each.name)
            for each in mapped
            if inputs.libraries and each.found is not None and _is_sure(each, inputs.places)
        ]
        parts = _parts(program, named, found)
        made, told = _made(sources, inputs, program, len(parts) + 1)
    beside = (*map(Neighbour, parts), *made)
    names = [recording.name for recording in recordings]
    replayed = replay_sources(
        sources, program, inputs, progress, timings, names=names, beside=beside, asks=asks
    )
    missing = _missing(mapped, replayed) if inputs.libraries else ()
    doubts = repetitions(inputs.profiles)
    notes = (*doubts, *said, *told, *replayed.notes, *missing)
    return replace(replayed, notes=notes)


def _made(
    sources: Sequence[Source], inputs: ProcessInputs, program: Program, slot: int
) -> tuple[list[Neighbour], list[str]]:
    """Code that processes made, in slots from this one on, where each has it, and notes."""
    if not (inputs.libraries or inputs.jit) or not _fits(program.image):
        return [], []
    roots = inputs.places.sysroots
    made, notes = made_code(sources, roots, inputs.jit, program.image.machine)
    parts = [
        Neighbour(Part(JitProgram(each.image), i, Path(each.image.image.path).name), each.mappings)
        for i, each in enumerate(made, slot)
    ]
    return parts, notes


def _is_sure(image: RecordedImage, places: ImagePlaces) -> bool:
    return image.build_id is not None or bool(places.sysroots)


def _parts(
    program: Program, named: Sequence[tuple[Path, str]], found: Sequence[tuple[Path, str]]
) -> tuple[Part, ...]:
    """The others, each once; those that are linked where no slot has room are left out."""
    known = _names_of(program.image)
    parts: list[Part] = []
    for i, (path, name) in enumerate([*named, *found]):
        each = Program.open(path)
        names = _names_of(each.image)
        if known.isdisjoint(names) and _fits(each.image) and _fits(program.image):
            parts.append(Part(each, len(parts) + 1, name, is_named=i < len(named)))
            known |= names
    return tuple(parts)


def _names_of(image: Image) -> set[Path | str]:
    """By which it is known to be the same as another one: its path and its build-id."""
    build_id = plain_build_id(image.build_id or "")
    return {Path(image.path).resolve(), *([build_id] if build_id else [])}


def _fits(image: Image) -> bool:
    layout = image.layout
    return not layout.anchors and all(each.end <= SLOT_SIZE for each in layout.segments)


def _missing(recorded: Sequence[RecordedImage], found: Replayed) -> Iterator[str]:
    """Files with branches that were not found, or not surely."""
    outside = counts_outside(found.flow.tallies)
    for image in recorded:
        count = outside.get(image.name, 0)
        if count:
            yield (
                f"{image} was not found, and {count:,} branches in it are not shown: name it with "
                "--binary, or say with --sysroot where the recorded machine's files are"
            )
