"""Programs that were kept beside their recording, for when they are built anew.

They lie in `RECORDING.binaries`, each in a folder that is called by its build-id.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.code_files import same_build_id
from lbr2pgo.model.space_event_log import as_log
from lbr2pgo.program.elf.find import ImagePlaces, is_build
from lbr2pgo.program.elf.image import Image
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source, StackSource
from lbr2pgo.support.errors import writable
from lbr2pgo.support.output import write_to


def started(source: StackSource) -> Iterator[tuple[Mmap, str | None]]:
    """The programs that processes started, each once; with their build-ids."""
    programs = source.info.programs
    for event in as_log(source.space_events()).programs:
        if isinstance(event, Mmap) and (programs is None or event.path in programs):
            yield event, event.build_id or source.info.build_ids.get(event.path)


def keep_programs(recording: Path) -> tuple[list[Path], list[str]]:
    """Copy the programs of a recording beside it; where they are, and why others are not.

    Raises OutputError where nothing can be written there.
    """
    source, kept, problems = open_source(recording), list[Path](), list[str]()
    programs = started(source) if isinstance(source, StackSource) else ()
    for path, build_id in dict.fromkeys((event.path, build_id) for event, build_id in programs):
        found = None if build_id is None else ImagePlaces().find(path, build_id)
        if build_id is None:
            problems.append(f"{path} was not kept: it has no build-id (link with -Wl,--build-id)")
        elif found is None:
            problems.append(f"{path} was not kept: it is another build now, or gone")
        else:
            kept.append(_store(recording) / build_id / Path(path).name)
            _copy(found, kept[-1])
    return kept, problems


def kept_program(path: str, build_id: str, sources: Sequence[Source]) -> Path | None:
    """A program that was kept beside one of these recordings, by its recorded path."""
    for source in sources:
        # What was recorded before is renamed by perf and by us.
        store = _store(Path(source.info.path.removesuffix(".old")))
        for folder in store.iterdir() if store.is_dir() else ():
            program = folder / Path(path).name
            if same_build_id(folder.name, build_id) and is_build(program, build_id):
                return program
    return None


def recorded_build(binary: Path, sources: Sequence[Source]) -> Path | None:
    """The recorded build of a program that was built anew since, if it was kept."""
    own = Image.open(binary).build_id
    programs = [each for source in sources if isinstance(source, StackSource)
                for each in started(source) if Path(each[0].path).name == binary.name]  # fmt: skip
    if any(build_id is None or same_build_id(build_id, own) for _, build_id in programs):
        return None
    found = (kept_program(event.path, build_id or "", sources) for event, build_id in programs)
    return next(filter(None, found), None)


def _store(recording: Path) -> Path:
    return recording.with_name(f"{recording.name}.binaries")


def _copy(program: Path, target: Path) -> None:
    with writable(target, "can't keep the program there", "Record to where you may write."):
        target.parent.mkdir(parents=True, exist_ok=True)

    def put(sink: BinaryIO) -> None:
        with program.open("rb") as stream:
            shutil.copyfileobj(stream, sink)

    write_to(target, put)
    shutil.copymode(program, target)
