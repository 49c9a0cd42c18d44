"""Frames of a program in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from builders.symbolizer import Frame

from lbr2pgo.program.dwarf.debug_info import InlineFrames
from lbr2pgo.program.elf.image import Image


def code_addresses(image: Image, step: int = 1) -> np.ndarray:
    parts = [
        np.arange(s.address, s.end, step, dtype=np.uint64) for s in image.sections if s.is_code
    ]
    return np.concatenate(parts)


def as_tuples(frames: InlineFrames) -> Iterator[list[Frame]]:
    for start, end in zip(frames.offsets, frames.offsets[1:], strict=False):
        yield [
            (frames.names[frames.function[i]], int(frames.line[i]), int(frames.start_line[i]),
             int(frames.discriminator[i]), frames.files[frames.file[i]])
            for i in range(start, end)
        ]  # fmt: skip
