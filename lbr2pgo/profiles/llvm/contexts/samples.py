"""Samples of contexts while they are added up."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.context_samples import infer_calls
from lbr2pgo.native.row_ids import RowIds, RowSums
from lbr2pgo.profiles.llvm.contexts.profile import ContextProfile
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.support.arrays import I64, U8, U64

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)


class ContextSamples:
    """Totals, heads, lines and call targets of contexts.

    Columns have one length each; contexts are rows in `contexts`, where 0 is none, and locations
    are those of `keys.location_of`.
    """

    def __init__(self, contexts: RowIds) -> None:
        self._contexts = contexts
        self._lines, self._calls = RowSums(), RowSums()
        self._totals: list[tuple[I64, U64]] = []
        self._heads: list[tuple[I64, U64]] = []
        self._seen: list[tuple[I64, U8]] = []

    def see(self, context: I64, attributes: U8) -> None:
        """Say that there are samples of contexts, and what their attributes are (bits)."""
        self._seen.append((context, attributes))

    def add_totals(self, context: I64, count: U64) -> None:
        """Add to totals."""
        self._totals.append((context, count))

    def add_lines(self, context: I64, location: U64, count: U64) -> None:
        """Add to counts of locations."""
        zeros = np.zeros(len(context), np.uint64)
        self._lines.add_rows(context.astype(np.uint64), location, zeros, count)

    def add_calls(self, context: I64, location: U64, callee: I64, count: U64) -> None:
        """Add calls that were made from locations."""
        self.add_lines(context, location, np.zeros(len(context), np.uint64))
        columns = (context.astype(np.uint64), location, callee.astype(np.uint64))
        self._calls.add_rows(*columns, count)

    def add_heads(self, context: I64, location: U64, callee: I64, count: U64) -> None:
        """Add head samples of functions that were called from contexts."""
        columns = (context.astype(np.uint64), location, callee.astype(np.uint64))
        called = self._contexts.number_rows(*columns)
        self.see(called, np.zeros(len(called), np.uint8))
        self._heads.append((called, count))

    def profile(self, names: tuple[str, ...], *, is_fs: bool) -> ContextProfile:
        """What was added up, with what callers know of inlined functions."""
        size = len(self._contexts)
        head, total = _sums(self._heads, size), _sums(self._totals, size)
        has_samples, attributes = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        for context, bits in self._seen:
            has_samples[context] = 1
            np.bitwise_or.at(attributes, context, bits)
        has_samples[0] = 0
        infer_calls(self._contexts, has_samples, head, total, self._lines, self._calls)
        body, calls = self._body()
        table = ProfileTable(names, self._made(total, head), body, calls, is_fs)
        return ContextProfile(table, has_samples[1:].astype(np.bool_), attributes[1:])

    def _made(self, total: U64, head: U64) -> Contexts:
        rows = self._contexts.rows()[1:]
        return Contexts(
            parent=rows[:, 0].astype(np.int64) - 1,
            line=(rows[:, 1] >> _HIGH).astype(np.int64),
            discriminator=(rows[:, 1] & _LOW).astype(np.int64),
            name=rows[:, 2].astype(np.int64),
            total=total[1:],
            head=head[1:],
        )

    def _body(self) -> tuple[Body, CallTargets]:
        """Locations in their order, each with a count that is at least that of its calls."""
        lines, calls = self._lines.rows(), self._calls.rows()
        called = self._calls.counts()
        row = _places(lines, calls)
        sums = np.zeros(len(lines), np.uint64)
        np.add.at(sums, row, called)
        count = np.maximum(self._lines.counts(), sums)
        order = np.lexsort((lines[:, 1], lines[:, 0]))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        body = Body(
            context=lines[order, 0].astype(np.int64) - 1,
            line=(lines[order, 1] >> _HIGH).astype(np.int64),
            discriminator=(lines[order, 1] & _LOW).astype(np.int64),
            count=count[order],
        )
        return body, CallTargets(place[row], calls[:, 2].astype(np.int64), called)


def _sums(parts: list[tuple[I64, U64]], size: int) -> U64:
    total = np.zeros(size, np.uint64)
    for context, count in parts:
        np.add.at(total, context, count)
    return total


def _places(lines: U64, calls: U64) -> I64:
    """The line of each call."""
    context, location = (np.concatenate((lines[:, k], calls[:, k])) for k in (0, 1))
    return RowIds().number_rows(context, location)[len(lines) :]
