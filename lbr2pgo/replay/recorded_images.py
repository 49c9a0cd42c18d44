"""The files that a recording mapped as code, and where they are now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.space_event_log import of_files
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.replay.kept_programs import kept_program
from lbr2pgo.sources.base import Source, StackSource


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
