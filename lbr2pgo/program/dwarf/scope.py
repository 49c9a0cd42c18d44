"""Places in the source, in the functions around them: what units said, put together.

Most of what a place is inlined through is around many other places, too, so each function stands
here once, where `frame` repeats it for every address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.dwarf.function import NumberedTexts, describe_all
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.arrays import I32, I64, U32, Bools, Records
from lbr2pgo.support.tables import Tabular, table, taken


@table
class Scopes(Tabular):
    """A forest of functions and of those inlined into them, parents before children; (s,) each."""

    parent: I32
    """-1 for a function that is not inlined."""
    function: I32
    """Index into the names: the linkage name if there is one, else the name. The name is empty
    where DWARF has none; llvm-profgen drops such a function and all that is inlined into it."""
    start_line: U32
    """Where the function is declared."""
    line: U32
    """Of the call in the parent."""
    discriminator: U32
    """Of the call in the parent, as encoded in DWARF."""

    def passed_on(self, values: I64) -> I64:
        """(s,): values, given by functions to all that is inlined into them; none below 0.

        What is inlined into several that give one has that of the outermost.
        """
        passed = values.copy()
        outer = self.parent.astype(np.int64)
        rows = np.flatnonzero(outer >= 0)
        while len(rows):  # from twice as far up each time
            above = passed[outer[rows]]
            passed[rows] = np.where(above >= 0, above, passed[rows])
            outer[rows] = outer[outer[rows]]
            rows = rows[outer[rows] >= 0]
        return passed

    def outermost(self) -> I64:
        """(s,): the function around each that is not inlined; itself, where it is none."""
        return self.passed_on(np.where(self.parent < 0, np.arange(len(self)), -1))


@table
class ScopedPlaces(Tabular):
    """p places in the source, and what is around them."""

    scope: I32
    """(p,): row of the innermost function around each, -1 where nothing is known. Code that has a
    line, but no function, is in a function of its own without a name."""
    line: U32
    """(p,): of the instruction; 0 if not known."""
    discriminator: U32
    """(p,), as encoded in DWARF."""
    scopes: Scopes
    names: Sequence[str]

    @classmethod
    def none(cls, places: int) -> ScopedPlaces:
        """So many, of which nothing is known."""
        indices, numbers = np.zeros(0, np.int32), np.zeros(0, np.uint32)
        zeros = np.zeros(places, np.uint32)
        scopes = Scopes(indices, indices, numbers, numbers, numbers)
        return cls(np.full(places, -1, np.int32), zeros, zeros, scopes, ())

    def is_used(self) -> Bools:
        """(s,): which functions are around a place."""
        used = np.zeros(len(self.scopes), np.bool_)
        rows = self.scope
        while len(rows := rows[rows >= 0]):
            rows = rows[~used[rows]]
            used[rows] = True
            rows = self.scopes.parent[rows]
        return used

    def with_scopes(self, kept: Bools) -> ScopedPlaces:
        """The same with some of the functions (s,), of which all that is used is one."""
        number = np.append(np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(-1))
        scopes = taken(self.scopes, kept)
        scopes = replace(scopes, parent=number[scopes.parent])
        return replace(self, scope=number[self.scope], scopes=scopes)


class ScopeGroup(NamedTuple):
    """Places that one unit covers, and the functions around them."""

    rows: I64
    """(k,): which of the addresses."""
    scope: I32
    """(k,): as in `ScopedPlaces`, of this unit's."""
    leaf: Records
    """(k,) rows of `FOUND`."""
    dwarf: Dwarf
    """Where the DIEs are."""
    parent: I32
    """(d,): as in `Scopes`."""
    described: Records
    """(d,) rows of `DESCRIPTION`."""


def assemble_places(groups: Sequence[ScopeGroup], count: int) -> ScopedPlaces:
    """`count` places, of which each group holds some."""
    scope = np.full(count, -1, np.int32)
    line, discriminator = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    is_there = np.zeros(count, np.bool_)
    parents, before = [np.zeros(0, np.int32)], 0
    for group in groups:
        scope[group.rows] = _moved(group.scope, before)
        line[group.rows] = group.leaf["line"]
        discriminator[group.rows] = group.leaf["discriminator"]
        is_there[group.rows] = group.leaf["is_there"] != 0
        parents.append(_moved(group.parent, before))
        before += len(group.parent)
    names = NumberedTexts()
    name, described = describe_all([(group.dwarf, group.described) for group in groups], names)
    (nameless,) = names.numbers([""])
    lonely = np.flatnonzero(is_there & (scope < 0))
    scope[lonely] = before + np.arange(len(lonely))
    zeros = np.zeros(len(lonely), np.uint32)
    scopes = Scopes(
        np.concatenate([*parents, np.full(len(lonely), -1, np.int32)]),
        np.append(np.where(name < 0, nameless, name), np.full(len(lonely), nameless)),
        *(
            np.concatenate([described[column], zeros])
            for column in ("decl_line", "call_line", "discriminator")
        ),
    )
    return ScopedPlaces(scope, line, discriminator, scopes, names.texts)


def _moved(rows: I32, before: int) -> I32:
    """Rows of scopes, where so many stand before them."""
    return np.where(rows < 0, np.int32(-1), rows + np.int32(before))
