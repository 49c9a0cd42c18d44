"""Frames of a program in a form that can be compared, and places with such frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from builders.symbolizer import Frame

from lbr2pgo.program.dwarf.debug_info import InlineFrames, ScopedPlaces, Scopes
from lbr2pgo.program.elf.image import Image

PlainFrame = tuple[str, int, int, int]
"""Name, line, line of declaration, discriminator."""


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


def frames_of(found: ScopedPlaces) -> Iterator[list[PlainFrame]]:
    """The frames of each place, outermost first."""
    scopes = found.scopes
    for scope, line, discriminator in zip(
        found.scope.tolist(), found.line.tolist(), found.discriminator.tolist(), strict=True
    ):
        frames: list[PlainFrame] = []
        at, here = scope, (line, discriminator)
        while at >= 0:
            name, start = found.names[scopes.function[at]], int(scopes.start_line[at])
            frames.append((name, here[0], start, here[1]))
            here = int(scopes.line[at]), int(scopes.discriminator[at])
            at = int(scopes.parent[at])
        yield frames[::-1]


def places_with(rows: Sequence[Sequence[PlainFrame]]) -> ScopedPlaces:
    """Places with such frames, outermost first; what calls at one place share stands there once."""
    scopes: dict[tuple[int, str, int, int, int], int] = {}
    places = []
    for frames in rows:
        scope, here = -1, (0, 0)
        for name, line, start, discriminator in frames:
            scope = scopes.setdefault((scope, name, start, *here), len(scopes))
            here = line, discriminator
        places.append((scope, *here))
    names = tuple(sorted({scope[1] for scope in scopes}))
    numbered = [(row[0], names.index(row[1]), *row[2:]) for row in scopes]
    columns = np.array(numbered, np.int64).reshape(-1, 5).T
    scope, line, discriminator = np.array(places, np.int64).reshape(-1, 3).T
    kinds = (np.int32, np.int32, np.uint32, np.uint32, np.uint32)
    return ScopedPlaces(
        scope.astype(np.int32), line.astype(np.uint32), discriminator.astype(np.uint32),
        Scopes(*(column.astype(kind) for column, kind in zip(columns, kinds, strict=True))),
        names,
    )  # fmt: skip
