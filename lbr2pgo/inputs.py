"""The inputs of a conversion or a report: recordings, and the binary that they are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lbr2pgo.program.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source, StackSource


def open_inputs(
    profiles: Sequence[Path], image: Callable[[], Image]
) -> tuple[Program, list[Source]]:
    """Open them all, beside the binary (`Image.opening`); raises InputError for what can't be."""
    sources = [open_source(path) for path in profiles]
    for source in sources:
        if isinstance(source, StackSource):
            source.space_events()  # counting needs them first, and they need no binary
    return Program(image()), sources
