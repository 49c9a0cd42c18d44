"""Places in the source as LLVM's profiles name them, and the functions inlined there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.discriminators import base_discriminator, duplication_factor
from lbr2pgo.profiles.llvm.sample_profile import LARGEST_LINE
from lbr2pgo.program.dwarf.debug_info import ScopedPlaces
from lbr2pgo.support.arrays import I32, I64, U32, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct_rows
from lbr2pgo.support.texts import Texts


@dataclass(frozen=True, slots=True)
class Locations:
    """Where in a function something is, as LLVM says it; columns of equal length."""

    line: U32
    discriminator: U32
    words: U32
    """What DWARF calls the discriminator, in which LLVM packs more."""

    @classmethod
    def of(cls, line: U32, start_line: U32, words: U32, *, is_fs: bool) -> Locations:
        """From what DWARF says; `is_fs` says that discriminators are not packed."""
        return cls(
            (line - start_line) & np.uint32(LARGEST_LINE),
            words if is_fs else base_discriminator(words),
            words,
        )

    def at(self, rows: I64) -> tuple[I64, I64]:
        """Line and discriminator of these rows."""
        return self.line[rows].astype(np.int64), self.discriminator[rows].astype(np.int64)


@dataclass(frozen=True, slots=True)
class PlacesOfLines:
    """Places in the source and the functions around them (see `ScopedPlaces`)."""

    scope: I32
    """(p,): row of the function around each, -1 without debug information."""
    locations: Locations
    """Of the places in these."""
    parent: I64
    """(s,): row of the function that each function is inlined into, -1 for none."""
    function: I32
    """(s,): index into the names."""
    calls: Locations
    """Of the functions in their parents."""
    is_fs: bool
    names: Sequence[str]

    def location(self, places: I64) -> tuple[I64, I64]:
        """Line and discriminator of these places."""
        return self.locations.at(places)

    def factor(self, places: I64 | slice) -> U64:
        """Copies that the optimizer made of the code at these places."""
        words = self.locations.words[places]
        return (np.ones_like(words) if self.is_fs else duplication_factor(words)).astype(np.uint64)

    def function_at(self, places: I64) -> I64:
        """Index into the names of the function around each of these places, which all have one."""
        return self.function[self.scope[places]].astype(np.int64)


def places_of(found: ScopedPlaces, *, is_fs: bool) -> PlacesOfLines:
    """The same as LLVM names them; `is_fs` says that discriminators are not packed."""
    found = _named(found)
    scopes = found.scopes
    start_line = np.append(scopes.start_line, np.uint32(0))  # the last one for a row of -1
    return PlacesOfLines(
        found.scope,
        Locations.of(found.line, start_line[found.scope], found.discriminator, is_fs=is_fs),
        scopes.parent.astype(np.int64),
        scopes.function,
        Locations.of(scopes.line, start_line[scopes.parent], scopes.discriminator, is_fs=is_fs),
        is_fs,
        found.names,
    )


def _named(found: ScopedPlaces) -> ScopedPlaces:
    """The same without functions that have no name: what is in them is at their call."""
    scopes = found.scopes
    is_nameless = (Texts.of(found.names).lengths() == 0)[scopes.function]
    if not is_nameless.any():
        return found
    nameless = scopes.passed_on(np.where(is_nameless, np.arange(len(scopes)), -1))
    hidden = np.append(nameless, -1)[found.scope]
    rows, outer = np.flatnonzero(hidden >= 0), hidden[hidden >= 0]
    scope, line, discriminator = found.scope.copy(), found.line.copy(), found.discriminator.copy()
    scope[rows], line[rows] = scopes.parent[outer], scopes.line[outer]
    discriminator[rows] = scopes.discriminator[outer]
    found = replace(found, scope=scope, line=line, discriminator=discriminator)
    return found.with_scopes(nameless < 0)


@dataclass(frozen=True, slots=True)
class InlineContexts:
    """A forest of contexts, parents before children; columns of equal length."""

    parent: I64
    """-1 for functions that stand alone."""
    line: I64
    discriminator: I64
    """Location in the parent at which it was inlined."""
    function: I64


def inline_contexts(places: PlacesOfLines) -> tuple[InlineContexts, I64]:
    """Number the contexts, depth by depth: each is told apart by its parent and call.

    Also returns the innermost context of each place, -1 without debug information.
    """
    parts = [np.empty((4, 0), np.int64)]
    context = np.full(len(places.parent) + 1, -1)  # the last one for a row of -1
    size = 0
    for rows in levels(places.parent):
        parent, function = context[places.parent[rows]], places.function[rows].astype(np.int64)
        line, discriminator = places.calls.at(rows)
        if not size:  # stands alone
            line, discriminator = np.zeros_like(line), np.zeros_like(line)
        columns = (parent, line, discriminator, function)
        first, inverse = distinct_rows(parent, function, line, discriminator)
        parts.append(np.stack([column[first] for column in columns]))
        context[rows] = size + inverse
        size += len(first)
    parent, line, discriminator, function = np.concatenate(parts, axis=1)
    return InlineContexts(parent, line, discriminator, function), context[places.scope]


def pair(high: I64, low: I64) -> I64:
    """Two numbers below 2**31, or 2**32 the low one, as one number that is ordered alike."""
    return (high << 32) | low
