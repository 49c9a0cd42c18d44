"""Which function ran in which calling context: names for what unwinding found, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.context_counts import Callers, ContextBranches, ContextRuns
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._contexts import NO_LIMIT, ContextKeys
from lbr2pgo.profiles.llvm.contexts.columns import line_and_discriminator, location_of
from lbr2pgo.profiles.llvm.source_places import InlineContexts, PlacesOfLines
from lbr2pgo.support.arrays import I64, U64

MOST_FRAMES = 1 << 16
"""Of deeper contexts, with all that was inlined, the innermost frames count."""


@dataclass(frozen=True, slots=True)
class ContextShape:
    """How contexts are made shorter."""

    longest_repeat: int = NO_LIMIT
    """Recursion shows in a context once; its round may be so many calls long at most."""
    depth: int = NO_LIMIT
    """How many callers are kept."""


class ContextFrames:
    """Numbers frames: functions with a location in each."""

    def __init__(self) -> None:
        self._ids = RowIds()

    def number(self, function: I64, location: U64) -> I64:
        """Number of each frame, (n,)."""
        return self._ids.number_rows(function.astype(np.uint64), location)

    def rows(self) -> U64:
        """(f, 2): function and location by number."""
        return np.ascontiguousarray(self._ids.rows()[:, :2])


def line_keys(
    callers: Callers,
    call_places: I64,
    innermost: I64,
    places: PlacesOfLines,
    inlined: InlineContexts,
    shape: ContextShape,
    is_cut: bool,
) -> ContextKeys:
    """Contexts of functions by source line.

    `call_places` (n,): the place of each node's call, -1 where it has none; `innermost` (p,): the
    inlined function of each place, -1 likewise; `is_cut` says that contexts begin behind such a
    node, else there is none.
    """
    frames = ContextFrames()
    outer = inlined.parent
    outer_frame = frames.number(
        inlined.function[outer], location_of(inlined.line, inlined.discriminator)
    )
    known = np.flatnonzero(call_places >= 0)
    inline = np.full(len(callers), -1)
    inline[known] = innermost[call_places[known]]
    known = np.flatnonzero(inline >= 0)
    frame = np.zeros(len(callers), np.int64)
    place = call_places[known]
    frame[known] = frames.number(places.function_at(place), location_of(*places.location(place)))
    return ContextKeys(
        np.stack((callers.parent, inline, frame), axis=1),
        np.stack((outer, outer_frame, inlined.function), axis=1),
        frames.rows(), MOST_FRAMES, shape.longest_repeat, shape.depth, is_cut,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedContexts:
    """Counts by context; `node` is an index into the names, and rows may be alike."""

    names: tuple[bytes, ...]
    runs: ContextRuns
    branches: ContextBranches


def context_names(contexts: U64, functions: Sequence[str]) -> tuple[bytes, ...]:
    """What LLVM calls each of `ContextKeys.contexts` (n, 3); the first one has no name.

    >>> import numpy as np
    >>> from lbr2pgo.profiles.llvm.contexts.columns import location_of
    >>> call = location_of(np.array([3]), np.array([1]))[0]
    >>> context_names(np.array([[0, 0, 0], [0, 0, 0], [1, call, 1]], np.uint64), ["main", "f"])
    (b'', b'main', b'main:3.1 @ f')
    """
    line, discriminator = line_and_discriminator(contexts[:, 1])
    names = [""]
    columns = (contexts[:, 0], line, discriminator, contexts[:, 2])
    for caller, at, of, function in zip(*(c[1:].tolist() for c in columns), strict=True):
        place = f":{at}.{of} @ " if of else f":{at} @ "
        names.append((names[caller] + place if caller else "") + functions[function])
    return tuple(name.encode(errors="surrogateescape") for name in names)
