"""Places in the source as LLVM's profiles name them, and the functions inlined there."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.llvm.discriminators import base_discriminator, duplication_factor
from lbr2pgo.profiles.llvm.sample_profile import LARGEST_LINE
from lbr2pgo.program.dwarf.debug_info import InlineFrames
from lbr2pgo.support.arrays import I32, I64, U32, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.intervals import last_at_or_below


@dataclass(frozen=True, slots=True)
class Places:
    """Frames of every place, outermost first, with LLVM's locations (see `InlineFrames`)."""

    first: I64
    """Number of each place's outermost frame."""
    depth: I64
    """How many frames each place has; 0 without debug information."""
    function: I32
    line: U32
    discriminator: U32
    words: U32
    """What DWARF calls the discriminator, in which LLVM packs more."""
    is_fs: bool
    names: tuple[str, ...]

    @property
    def leaf(self) -> I64:
        """Number of each place's innermost frame; meaningless at depth 0."""
        return self.first + self.depth - 1

    def location(self, frames: I64) -> tuple[I64, I64]:
        """Line and discriminator in these frames."""
        return self.line[frames].astype(np.int64), self.discriminator[frames].astype(np.int64)

    def factor(self, frames: I64) -> U64:
        """Copies that the optimizer made of the code in these frames."""
        words = self.words[frames]
        return (np.ones_like(words) if self.is_fs else duplication_factor(words)).astype(np.uint64)


def places_of(frames: InlineFrames, *, is_fs: bool) -> Places:
    """The places that these are the frames of; `is_fs` says that discriminators are not packed."""
    words = frames.discriminator
    return Places(
        first=frames.offsets[:-1],
        depth=_named_depth(frames),
        function=frames.function,
        line=(frames.line - frames.start_line) & np.uint32(LARGEST_LINE),
        discriminator=words if is_fs else base_discriminator(words),
        words=words,
        is_fs=is_fs,
        names=frames.names,
    )


def _named_depth(frames: InlineFrames) -> I64:
    """Frames of each address from the outermost down to the last one before a nameless one."""
    depth = np.diff(frames.offsets)
    is_nameless = np.array([not name for name in frames.names], dtype=np.bool_)
    if not is_nameless.any():
        return depth
    nameless = np.flatnonzero(is_nameless[frames.function])
    owner = last_at_or_below(frames.offsets, nameless)
    np.minimum.at(depth, owner, nameless - frames.offsets[owner])
    return depth


@dataclass(frozen=True, slots=True)
class InlineContexts:
    """A forest of contexts, parents before children; columns of equal length.

    `levels[k]` gives, for each place deeper than k, its context at depth k.
    """

    parent: I64
    """-1 for functions that stand alone."""
    line: I64
    discriminator: I64
    """Location in the parent at which it was inlined."""
    function: I64
    levels: tuple[tuple[I64, I64], ...]
    """Per depth: numbers of places, and the context of each."""


def inline_contexts(places: Places) -> InlineContexts:
    """Number the contexts, depth by depth: each is told apart by its parent and call."""
    parts = [np.empty((4, 0), np.int64)]
    levels: list[tuple[I64, I64]] = []
    current = np.full(len(places.depth), -1, dtype=np.int64)
    size = 0
    for depth in range(int(places.depth.max(initial=0))):
        rows = np.flatnonzero(places.depth > depth)
        frame = places.first[rows] + depth
        call = frame - 1 if depth else frame
        line, discriminator = places.location(call)
        if not depth:  # stands alone
            line, discriminator = np.zeros_like(line), np.zeros_like(line)
        parent, function = current[rows], places.function[frame].astype(np.int64)
        columns = (parent, line, discriminator, function)
        first, inverse = distinct_rows(pair(parent, function), pair(line, discriminator))
        parts.append(np.stack([column[first] for column in columns]))
        current[rows] = size + inverse
        size += len(first)
        levels.append((rows, current[rows]))
    parent, line, discriminator, function = np.concatenate(parts, axis=1)
    return InlineContexts(parent, line, discriminator, function, tuple(levels))


def pair(high: I64, low: I64) -> I64:
    """Two numbers below 2**31, or 2**32 the low one, as one number that is ordered alike."""
    return (high << 32) | low


def distinct_rows(*keys: I64 | U64) -> tuple[I64, I64]:
    """Where each distinct row of the keys first stands, in their order, and the number of each row.

    >>> distinct_rows(np.array([3, 3, 1, 3]), np.array([0, 0, 5, 0]))
    (array([2, 0]), array([1, 1, 0, 1]))
    """
    differs = begins(*keys)  # from its neighbour: code that stands together is often of one place
    row = np.flatnonzero(differs)
    order = np.lexsort([key[row] for key in keys[::-1]])
    is_first = begins(*(key[row[order]] for key in keys))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_first) - 1
    return row[order[is_first]], number[np.cumsum(differs) - 1]


def leaf_contexts(places: Places, contexts: InlineContexts) -> I64:
    """The innermost context of each place, -1 without debug information."""
    leaf = np.full(len(places.depth), -1, dtype=np.int64)
    for rows, context in contexts.levels:
        leaf[rows] = context
    return leaf
