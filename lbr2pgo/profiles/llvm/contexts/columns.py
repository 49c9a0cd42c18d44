"""Sums under contexts and locations, as the columns of a profile."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets
from lbr2pgo.profiles.llvm.source_places import pair
from lbr2pgo.support.arrays import I64, U64

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
        self.counts, self.calls = RowSums(), RowSums()

    def add(self, context: I64, location: U64, count: U64) -> None:
        """Add to counts, in columns."""
        zeros = np.zeros(len(context), np.uint64)
        self.counts.add_rows(context.astype(np.uint64), location, zeros, count)

    def add_calls(self, context: I64, location: U64, callee: I64, count: U64) -> None:
        """Add calls; a location that only calls has a count of zero."""
        self.add(context, location, np.zeros(len(context), np.uint64))
        columns = (context.astype(np.uint64), location, callee.astype(np.uint64))
        self.calls.add_rows(*columns, count)

    def columns(self) -> tuple[Body, CallTargets]:
        """Locations in their order, and the calls from each."""
        lines, calls = self.counts.rows(), self.calls.rows()
        order = np.lexsort((lines[:, 1], lines[:, 0]))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        context, location, callee = map(np.ascontiguousarray, calls.T)
        row = place[self.counts.find_rows(context, location, np.zeros_like(context))]
        lines, counts = lines[order], self.counts.counts()[order]
        body = Body(lines[:, 0].astype(np.int64), *line_and_discriminator(lines[:, 1]), counts)
        return body, CallTargets(row, callee.astype(np.int64), self.calls.counts())
