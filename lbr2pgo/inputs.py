"""The inputs of a conversion or a report: recordings, and the binary that they are of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.program.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source, StackSource


def open_inputs(profiles: Sequence[Path], binary: Path) -> tuple[Program, list[Source]]:
    """Open them all, side by side; raises InputError for what can't be read."""
    # Where one of the two is loaded, there is nothing to wait for; the other is loaded once, here.
    is_first = not {"lief", "numba"} & sys.modules.keys()
    image = Image.opening(binary, in_background=is_first)
    sources = [open_source(path) for path in profiles]
    for source in sources:
        if isinstance(source, StackSource):
            source.space_events()  # counting needs them first, and they need no binary
    return Program(image()), sources
