"""Samples by calling context, in columns, and how they are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._contexts import infer_calls
from lbr2pgo.profiles.llvm.contexts.columns import LineColumns, line_and_discriminator
from lbr2pgo.profiles.llvm.contexts.vtable_contexts import ContextLoads
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, context_order_key
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.vtable_counts import VtableCounts
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.sums import add_at


@dataclass(frozen=True, slots=True)
class ContextProfile:
    """Functions in calling contexts: the parent of one is its caller, inlined or not.

    Totals are those of the function alone, without what it calls.
    """

    table: ProfileTable
    has_samples: Bools
    """(n,): False for callers of which nothing is known but that they called."""
    attributes: U8
    """(n,): WAS_INLINED and the like (`sample_profile`)."""

    def __len__(self) -> int:
        """How many contexts have samples."""
        return int(self.has_samples.sum())

    @property
    def is_inlined(self) -> Bools:
        """(n,): which have samples and callers that have: they are to be inlined there."""
        has_samples = np.append(self.has_samples, False)  # the last one: of no caller
        is_inlined: Bools = self.has_samples & has_samples[self.table.contexts.parent]
        return is_inlined

    def without_ambiguous(self) -> ContextProfile:
        """The same less functions that several may be of one name."""
        kept = self.has_samples & ~self.table.is_ambiguous
        if kept.sum() == len(self):
            return self
        body, calls = self.table.lines_of(kept)
        vtables = self.table.vtables_at(np.where(kept, np.arange(len(kept)), -1))
        table = replace(self.table, body=body, calls=calls, vtables=vtables)
        return replace(self, table=table, has_samples=kept)

    @property
    def names(self) -> Sequence[str]:
        """Of all functions."""
        return self.table.names

    def without_functions(self, is_dropped: Bools) -> ContextProfile:
        """The same less functions of some names, and what is known of contexts with them."""
        kept = ~self.table.with_those_below(is_dropped[self.table.contexts.name])
        table = self.table.without_functions(is_dropped)
        return ContextProfile(table, self.has_samples[kept], self.attributes[kept])

    def apart(self) -> ProfileTable:
        """The same as functions that don't know of each other."""
        alone = replace(self.table.contexts, parent=np.full_like(self.table.contexts.parent, -1))
        return replace(self.table, contexts=alone)

    def tree(self) -> SampleProfile:
        """The same with an object for each context that has samples, in the contexts' order."""
        flat, contexts = self.table.apart(), self._contexts()
        profile = SampleProfile(
            is_cs=True, is_fs=self.table.is_fs, is_probe_based=self.table.checksum is not None
        )
        rows = np.flatnonzero(self.has_samples).tolist()
        for row in sorted(rows, key=lambda row: context_order_key(contexts[row])):
            samples, context = flat[row], contexts[row]
            samples.context, samples.attributes = context, int(self.attributes[row])
            profile.functions[context] = samples
        return profile

    def _contexts(self) -> list[Context]:
        contexts: list[Context] = []
        c, names = self.table.contexts, tuple(self.names)
        columns = (c.parent, c.line, c.discriminator, c.name)
        for parent, line, discriminator, name in zip(*(x.tolist() for x in columns), strict=True):
            callers: Context = ()
            if parent >= 0:
                outer = contexts[parent]
                callers = (*outer[:-1], Frame(outer[-1].function, (line, discriminator)))
            contexts.append((*callers, Frame(names[name])))
        return contexts


class ContextSamples:
    """Totals, heads, lines and call targets of contexts.

    Columns have one length each; contexts are rows in `contexts`, where 0 is none, and locations
    are those of `columns.location_of`.
    """

    def __init__(self, contexts: RowIds) -> None:
        self._contexts = contexts
        self.lines = LineColumns()
        """Numbered as contexts are."""
        self._totals: list[tuple[I64, U64]] = []
        self._heads: list[tuple[I64, U64]] = []
        self._seen: list[I64] = []
        self._marked: list[tuple[I64, U8]] = []
        self._vtables: VtableCounts | None = None

    def see(self, context: I64) -> None:
        """Say that there are samples of contexts."""
        self._seen.append(context)

    def mark(self, context: I64, attributes: U8) -> None:
        """Add attributes (bits) to contexts, whether there are samples of them or not."""
        self._marked.append((context, attributes))

    def add_totals(self, context: I64, count: U64) -> None:
        """Add to totals."""
        self._totals.append((context, count))

    def add_heads(self, context: I64, location: U64, callee: I64, count: U64) -> None:
        """Add head samples of functions that were called from contexts."""
        columns = (context.astype(np.uint64), location, callee.astype(np.uint64))
        called = self._contexts.number_rows(*columns)
        self.see(called)
        self._heads.append((called, count))

    def add_entries(self, context: I64, count: U64) -> None:
        """Add head samples of contexts."""
        self._heads.append((context, count))

    def add_loads(self, context: I64, location: U64, loads: ContextLoads) -> None:
        """Add virtual tables that were loaded from in contexts, 0 for none."""
        place = line_and_discriminator(location)
        self._vtables = VtableCounts(context, *place, loads.vtable, loads.count, loads.names)

    def called(self, context: I64) -> tuple[I64, U64, I64]:
        """The callers of contexts, 0 for none, where in them these were called, and their names."""
        caller, location, name = self._contexts.rows()[context].T
        return caller.astype(np.int64), location.copy(), name.astype(np.int64)

    def profile(
        self,
        names: tuple[str, ...],
        *,
        is_fs: bool = False,
        infers_calls: bool = False,
        of_silent_alone: bool = False,
    ) -> ContextProfile:
        """What was added up; `infers_calls` tells callers of calls of what was inlined.

        `of_silent_alone`: only those that have no samples themselves.
        """
        size = len(self._contexts)
        head, total = _sums(self._heads, size), _sums(self._totals, size)
        has_samples, attributes = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        for context in self._seen:
            has_samples[context] = 1
        for context, bits in self._marked:
            np.bitwise_or.at(attributes, context, bits)
        has_samples[0] = 0
        lines = self.lines
        if infers_calls:
            first = lines.first_lines(size)
            told, count = infer_calls(
                self._contexts, has_samples, head, total, *first, of_silent_alone
            )
            caller, location, callee = self.called(told)
            lines.add(caller, location, count)
            lines.add_calls(caller, location, callee, count)
        body, calls = lines.columns()
        if infers_calls:
            body = raised(body, calls)
        body = replace(body, context=body.context - 1)
        vtables = self._vtables and self._vtables.moved(np.arange(size) - 1)
        table = ProfileTable(names, self._made(total, head), body, calls, is_fs, vtables=vtables)
        return ContextProfile(table, has_samples[1:].astype(np.bool_), attributes[1:])

    def _made(self, total: U64, head: U64) -> Contexts:
        rows = self._contexts.rows()[1:]
        line, discriminator = line_and_discriminator(rows[:, 1])
        return Contexts(
            parent=rows[:, 0].astype(np.int64) - 1,
            line=line,
            discriminator=discriminator,
            name=rows[:, 2].astype(np.int64),
            total=total[1:],
            head=head[1:],
        )


def _sums(parts: list[tuple[I64, U64]], size: int) -> U64:
    total = np.zeros(size, np.uint64)
    for context, count in parts:
        add_at(total, context, count)
    return total


def raised(body: Body, calls: CallTargets) -> Body:
    """Locations run at least as often as they call (LLVM: updateCallsiteSamples)."""
    return replace(body, count=np.maximum(body.count, calls.of_rows(len(body.count))))
