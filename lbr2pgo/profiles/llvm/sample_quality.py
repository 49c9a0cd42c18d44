"""How much a sample profile tells, and how near two of them are to each other.

>>> from lbr2pgo.profiles.llvm.text import parse
>>> old = parse([b"f:6:1", b" 1: 3", b" 2: 1"], "old")
>>> density(old)
2.0
>>> compare(old, parse([b"f:60:10", b" 1: 30", b" 2: 10"], "ten times as long")).similarity
1.0

A copy of what a function holds too (`DUPLICATED_INTO_BASE`) is counted by `density` and `compare`,
as llvm-profgen and llvm-profdata count it; hot functions and their `coverage` are without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lbr2pgo.profiles.llvm.density import HOT
from lbr2pgo.profiles.llvm.density import density as density_of
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, Key, guid
from lbr2pgo.profiles.llvm.sample_profile import (
    DUPLICATED_INTO_BASE,
    FunctionSamples,
    SampleProfile,
)
from lbr2pgo.profiles.llvm.sample_weights import with_inlined
from lbr2pgo.profiles.reader import ProfileOverlap

_SCALE = 1_000_000

Pair = tuple[int, int]


def counts_of(function: FunctionSamples, passed: int = 0) -> Iterator[int]:
    """The count of every location of a function and of what `with_inlined` gives with it."""
    for each in with_inlined(function, passed):
        for location in each.locations():
            yield each.body.get(location, 0)


def density(profile: SampleProfile) -> float:
    """Samples per location in the sparsest function that is hot; 0 if there is none."""
    counts = [list(counts_of(function)) for function in profile.functions.values()]
    return density_of(
        np.array([sum(each) for each in counts], np.uint64), np.array(list(map(len, counts)))
    )


def hot_functions(profile: SampleProfile) -> list[FunctionSamples]:
    """The fewest functions that hold `HOT` of all counts, hottest first; none without counts."""
    functions = profile.functions.values()
    sums = [(sum(counts_of(each, DUPLICATED_INTO_BASE)), each) for each in functions]
    wanted = sum(count for count, _ in sums) * HOT
    hot, reached = [], 0
    for count, function in sorted(sums, key=lambda pair: -pair[0]):
        if reached * _SCALE >= wanted:
            break
        reached += count
        hot.append(function)
    return hot


def coverage(profile: SampleProfile) -> float:
    """Share of the hot functions' locations that have a count; 0 if no function is hot.

    A converter lists all locations of a function that ran, so one without a count was not seen.
    """
    hot = hot_functions(profile)
    counts = [count for each in hot for count in counts_of(each, DUPLICATED_INTO_BASE)]
    return sum(count > 0 for count in counts) / len(counts) if counts else 0.0


def compare(base: SampleProfile, test: SampleProfile) -> ProfileOverlap:
    """Compare two profiles as `llvm-profdata overlap --sample` does.

    (LLVM: tools/llvm-profdata/llvm-profdata.cpp, SampleOverlapAggregator.)
    """
    mine, theirs = _by_guid(base), _by_guid(test)
    sums = {
        key: (_sum(mine[key]) if key in mine else 0, _sum(theirs[key]) if key in theirs else 0)
        for key in mine.keys() | theirs.keys()
    }
    totals = sum(a for a, _ in sums.values()), sum(b for _, b in sums.values())
    similarity, smaller, larger = 0.0, 0, 0
    for key in sorted(sums, key=str):
        pairs = [sums[key]]
        if key in mine and key in theirs:
            pairs = list(_pairs(mine[key], theirs[key]))
            similarity += _weighted(_inner_similarity(pairs, sums[key]), sums[key], totals)
        smaller += sum(map(min, pairs))
        larger += sum(map(max, pairs))
    return ProfileOverlap(
        similarity=min(max(similarity, 0.0), 1.0),
        samples=smaller / larger if larger else 0.0,
        functions=len(mine.keys() & theirs.keys()) / len(sums) if sums else 0.0,
    )


def _by_guid(profile: SampleProfile) -> Mapping[int | Context, FunctionSamples]:
    """Functions by their names' hashes, so that profiles with and without names compare."""
    return {_hashed(key): function for key, function in profile.functions.items()}


def _hashed(key: Key) -> int | Context:
    if isinstance(key, tuple):
        return tuple(Frame(guid(frame.function), frame.location) for frame in key)
    return guid(key)


def _sum(function: FunctionSamples) -> int:
    return sum(counts_of(function))


def _pairs(base: FunctionSamples, test: FunctionSamples) -> Iterator[Pair]:
    """Counts of equal locations; an inlined copy that only one side has is a single one."""
    for location in {*base.locations(), *test.locations()}:
        yield base.body.get(location, 0), test.body.get(location, 0)
    mine = {(place, guid(callee.name)): callee for place, callee in base.inlined()}
    theirs = {(place, guid(callee.name)): callee for place, callee in test.inlined()}
    for key in mine.keys() | theirs.keys():
        if key in mine and key in theirs:
            yield from _pairs(mine[key], theirs[key])
        elif key in mine:
            yield _sum(mine[key]), 0
        else:
            yield 0, _sum(theirs[key])


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def _inner_similarity(pairs: list[Pair], sums: Pair) -> float:
    """1 where counts are distributed alike over a function's locations, 0 where none is shared."""
    return 1 - sum(abs(_share(a, sums[0]) - _share(b, sums[1])) for a, b in pairs) / 2


def _weighted(similarity: float, sums: Pair, totals: Pair) -> float:
    """A function's part of the whole: less where its weight differs, more where it is heavy."""
    a, b = _share(sums[0], totals[0]), _share(sums[1], totals[1])
    return similarity * (1 - abs(a - b)) * (a + b) / 2
