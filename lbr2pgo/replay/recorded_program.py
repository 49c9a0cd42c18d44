"""The files that a recording mapped as code, where they are, and which is the program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.code_files import same_build_id
from lbr2pgo.model.space_event_log import of_files
from lbr2pgo.program.elf.find import ImagePlaces, is_build
from lbr2pgo.program.elf.image import Image
from lbr2pgo.replay.kept_programs import kept_program, recorded_build, started
from lbr2pgo.sources.base import Source, StackSource
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class RecordedImage:
    """A file that was mapped as code."""

    path: str
    build_id: str | None
    found: Path | None
    """Where it is; None where it is not."""

    @property
    def name(self) -> str:
        """Without folders."""
        return os.path.basename(self.path)

    def __str__(self) -> str:
        return self.path + (f" ({self.build_id})" if self.build_id else "")


def recorded_images(sources: Sequence[Source], places: ImagePlaces) -> Iterator[RecordedImage]:
    """Each file that was mapped as code, and where it is; one build once, by its first path."""
    known: dict[str, tuple[str, str | None]] = {}
    for source in sources:
        events = source.space_events() if isinstance(source, StackSource) else ()
        for event in of_files(events):
            if isinstance(event, Mmap) and event.is_code_of_file:
                build_id = event.build_id or source.info.build_ids.get(event.path)
                known.setdefault(build_id or event.path, (event.path, build_id))
    for path, build_id in sorted(known.values(), key=str):
        found = places.find(path, build_id)
        if found is None and build_id is not None:
            found = kept_program(path, build_id, sources)
        yield RecordedImage(path, build_id, found)


def program_of(
    binary: Path | None,
    sources: Sequence[Source],
    places: ImagePlaces | None = None,
    build_id: str | None = None,
) -> tuple[Path, list[str]]:
    """The program that was recorded, and what is to be said of it.

    That is the one which is named, unless it was built anew since and its recorded build was kept;
    as given where its recorded `build_id` is said. Raises as `recorded_program` if none is named.
    """
    if binary is None:
        found = recorded_program(sources, places)
        id_of = Image.open(found).build_id
        return found, [f"the program is {found}, as recorded (build-id {id_of})"]
    kept = None if build_id is not None else recorded_build(binary, sources)
    if kept is None:
        return binary, []
    return kept, [f"{binary} was built anew since: the program is {kept}, as recorded"]


def recorded_program(sources: Sequence[Source], places: ImagePlaces | None = None) -> Path:
    """Where the one program that all sources were recorded of still is, by path and build-id.

    Without `places` it is looked for where it was recorded, and where it was kept beside a
    recording. Raises InputError where a source does not say it, where there are several, and where
    the file is gone or is another build.
    """
    programs = [_of(source) for source in sources]
    program = _only([mapping for mapping, _ in programs], sources[0])
    build_id = programs[0][1]
    found = places.find(program.path, build_id) if places is not None else None
    if found is None and not is_build(program.path, build_id):
        found = kept_program(program.path, build_id, sources)
    if found is not None:
        return found
    for (mapping, recorded), source in zip(programs, sources, strict=True):
        _refuse_other_build(mapping, recorded, source)
    return Path(program.path)


def _of(source: Source) -> tuple[Mmap, str]:
    """The program, and its build-id."""
    if not isinstance(source, StackSource):
        raise _unclear("the format does not say which program was recorded", source)
    builds = {event.path: (event, build_id) for event, build_id in started(source)}
    program, recorded = builds[_only([event for event, _ in builds.values()], source).path]
    if recorded is None:
        raise _unclear(f"it has no build-id to know {program.path} again by", source)
    return program, recorded


def _only(started: Iterable[Mmap], source: Source) -> Mmap:
    """The mapping of the one program that was started, however often."""
    programs = {program.path: program for program in started}
    if len(programs) != 1:
        what = f"{len(programs)} programs were recorded ({', '.join(programs)})"
        raise _unclear(what if programs else "it has no mappings of a program", source)
    (program,) = programs.values()
    return program


def _refuse_other_build(program: Mmap, recorded: str, source: Source) -> None:
    if not Path(program.path).is_file():
        raise _unclear(f"the recorded {program.path} is not here", source)
    found = Image.open(program.path).build_id
    if not same_build_id(recorded, found):
        raise _unclear(
            f"{program.path} is another build now: build-id {found} here, {recorded} there", source
        )


def _unclear(what: str, source: Source) -> InputError:
    return InputError(what, where=source.info.path, cure="Name the program with --binary.")
