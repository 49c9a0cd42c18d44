"""The program that was recorded, found by what the recording says, where nobody names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lbr2pgo.counting.find_image import same_build_id
from lbr2pgo.model.address_space_events import Comm, Mmap, SpaceEvent
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.elf.image import Image
from lbr2pgo.sources.base import Source, StackSource
from lbr2pgo.support.errors import InputError


def recorded_program(sources: Sequence[Source], places: ImagePlaces | None = None) -> Path:
    """Where the one program that all sources were recorded of still is, by path and build-id.

    Without `places` it is looked for where it was recorded only. Raises InputError where a source
    does not say it, where there are several, and where the file is gone or is another build.
    """
    programs = [_of(source) for source in sources]
    program = _only([mapping for mapping, _ in programs], sources[0])
    build_id = programs[0][1]
    found = places.find(program.path, build_id) if places is not None else None
    if found is not None:
        return found
    for (mapping, recorded), source in zip(programs, sources, strict=True):
        _refuse_other_build(mapping, recorded, source)
    return Path(program.path)


def _of(source: Source) -> tuple[Mmap, str]:
    """The program, and its build-id."""
    if not isinstance(source, StackSource):
        raise _unclear("the format does not say which program was recorded", source)
    program = _only(_started(source.space_events()), source)
    recorded = program.build_id or source.info.build_ids.get(program.path)
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


def _started(events: Sequence[SpaceEvent]) -> Iterator[Mmap]:
    """The first file that each process mapped as code after `execve`: the program itself.

    The kernel maps it before its loader (Linux: fs/binfmt_elf.c, load_elf_binary).
    """
    has_started: set[int] = set()
    for event in events:
        if isinstance(event, Comm) and event.is_exec:
            has_started.discard(event.pid)
        elif isinstance(event, Mmap) and event.is_code_of_file and event.pid not in has_started:
            has_started.add(event.pid)
            yield event


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
