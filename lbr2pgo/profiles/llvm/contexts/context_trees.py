"""Contexts as LLVM's tools walk them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lbr2pgo.profiles.llvm.lacks import Lack
from lbr2pgo.profiles.llvm.profile_table import depths
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools

if TYPE_CHECKING:
    from lbr2pgo.model.context_counts import Callers

_HALF, _FACTOR = np.uint64(32), np.uint64(33)


class Lost(NamedTuple):
    """What contexts can't tell of runs; (r,) each."""

    nowhere: U8
    """`Lack` of a place in the source, or of a probe."""
    cut: U8
    """The same of the innermost call that has none, above which callers are not known."""
    call: PlacedAddresses
    """Where that call is; 0 where all callers are known."""

    @property
    def is_nowhere(self) -> Bools:
        """Which have no place."""
        found: Bools = self.nowhere != Lack.NOTHING
        return found

    @property
    def is_cut(self) -> Bools:
        """Whose callers are not all known."""
        found: Bools = self.cut != Lack.NOTHING
        return found


def levels(parent: I64) -> Iterator[I64]:
    """Contexts by their depth: those without a parent (-1), their children, and so on."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def cut_at(callers: Callers, is_unknown: Bools) -> I64:
    """The node of the innermost unknown call of each call stack (n,); 0, the root, for none."""
    found = np.where(is_unknown, np.arange(len(is_unknown)), 0)
    for level in levels(callers.parent):
        above = found[np.maximum(callers.parent[level], 0)]
        found[level] = np.where(found[level] > 0, found[level], above)
    return found


def outermost(callers: Callers, is_such: Bools) -> Bools:
    """Which calls (n,) are such, with all that are around them."""
    found = is_such.copy()
    found[0] = True
    for level in levels(callers.parent):
        found[level] &= found[np.maximum(callers.parent[level], 0)]
    return found


def call_hashes(function: I64, location: U64, guids: U64) -> U64:
    """What LLVM orders the callees of one caller by; `location` is that of `location_of`.

    There the discriminator is the upper half (LLVM: SampleProf.h, LineLocation::getHashCode and
    SampleContextFrame::getHashCode).
    """
    swapped: U64 = location << _HALF | location >> _HALF
    hashes: U64 = guids[function] + swapped * _FACTOR
    return hashes


def breadth_first(parent: I64, key: U64) -> I64:
    """The order of contexts if callers come before callees; those of one caller by the key."""
    place = np.zeros(len(parent) + 1, np.int64)  # the last one: of no parent
    parts, done = [np.empty(0, np.int64)], 0
    for rows in levels(parent):
        ordered = rows[np.lexsort((key[rows], place[parent[rows]]))]
        place[ordered] = done + np.arange(len(ordered))
        done += len(ordered)
        parts.append(ordered)
    return np.concatenate(parts)
