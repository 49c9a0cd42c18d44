"""Contexts as LLVM's tools walk them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lbr2pgo.profiles.llvm.profile_table import depths
from lbr2pgo.support.arrays import I64, U64, Bools

if TYPE_CHECKING:
    from lbr2pgo.model.context_counts import Callers

_HALF, _FACTOR = np.uint64(32), np.uint64(33)


class Lost(NamedTuple):
    """What contexts can't tell of runs; (r,) each."""

    is_nowhere: Bools
    """Without a place in the source, or a probe."""
    is_cut: Bools
    """Whose callers are not all known, since some call has none."""
    is_foreign: Bools
    """Of these, those called from functions in which nothing has any."""


def levels(parent: I64) -> Iterator[I64]:
    """Contexts by their depth: those without a parent (-1), their children, and so on."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def lack_callers(callers: Callers, is_unknown: Bools) -> Bools:
    """Which call stacks (n,) hold an unknown call; that of the root is none."""
    found = is_unknown.copy()
    found[0] = False
    for level in levels(callers.parent):
        found[level] |= found[np.maximum(callers.parent[level], 0)]
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
