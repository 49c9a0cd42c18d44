"""Sums under contexts and locations, as the columns of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lbr2pgo.profiles.llvm.contexts._line_sums import rows_of, summed
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets
from lbr2pgo.profiles.llvm.source_places import pair
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import add_at

NO_LINE = np.uint64(np.iinfo(np.uint64).max)
"""Behind all locations."""

_HIGH, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def location_of(line: I64, discriminator: I64) -> U64:
    """Line and discriminator as one number that is ordered alike."""
    return pair(line, discriminator).view(np.uint64)


def line_and_discriminator(location: U64) -> tuple[I64, I64]:
    """What `location_of` was made of."""
    return (location >> _HIGH).astype(np.int64), (location & _LOW).astype(np.int64)


class LineColumns:
    """Adds up counts of locations and calls from them; contexts are numbers from 0 on."""

    def __init__(self) -> None:
        self._lines: list[tuple[I64, U64, U64]] = []
        self._calls: list[tuple[I64, U64, U64, U64]] = []

    def add(self, context: I64, location: U64, count: U64) -> None:
        """Add to counts, in columns."""
        self._lines.append((context, location, count))

    def add_calls(self, context: I64, location: U64, callee: I64, count: U64) -> None:
        """Add calls; a location that only calls has a count of zero."""
        self.add(context, location, np.zeros(len(context), np.uint64))
        self._calls.append((context, location, callee.astype(np.uint64), count))

    def first_lines(self, contexts: int) -> tuple[U64, U64]:
        """(contexts,): the first location of each, `NO_LINE` where there is none; its count."""
        first, sums = np.full(contexts, NO_LINE), np.zeros(contexts, np.uint64)
        for context, location, _ in self._lines:
            np.minimum.at(first, context, location)
        for context, location, count in self._lines:
            rows = np.flatnonzero(location == first[context])
            add_at(sums, context[rows], count[rows])
        return first, sums

    def columns(self) -> tuple[Body, CallTargets]:
        """Locations in their order, and the calls from each."""
        context, location, count = _joined(self._lines, np.int64, np.uint64, np.uint64)
        contexts = int(context.max(initial=-1)) + 1
        offsets, locations, counts = summed(context, location, count, contexts)
        context, location, callee, count = _joined(
            self._calls, np.int64, np.uint64, np.uint64, np.uint64
        )
        row = rows_of(offsets, locations, context, location)
        called, callee, calls = summed(row, callee, count, len(locations))
        body = Body(_repeated(offsets), *line_and_discriminator(locations), counts)
        return body, CallTargets(_repeated(called), callee.astype(np.int64), calls)


def _joined(parts: Sequence[tuple[Any, ...]], *types: type[np.generic]) -> list[Any]:
    """The columns of all parts, one behind the other."""
    columns = zip(*parts, strict=True) if parts else [()] * len(types)
    return [
        np.concatenate((np.empty(0, dtype), *column))
        for dtype, column in zip(types, columns, strict=True)
    ]


def _repeated(offsets: I64) -> I64:
    """The number of the group of each row."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
