"""Virtual tables that the functions of a `ProfileTable` loaded from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import Tabular, table, taken


@table
class VtableCounts(Tabular):
    """Columns of n rows in any order; several of one place and virtual table add up."""

    context: I64
    """Row of the contexts."""
    line: I64
    """Or the number of a probe."""
    discriminator: I64
    vtable: I64
    """Index into `names`."""
    count: U64
    names: tuple[str, ...]

    def moved(self, place: I64) -> VtableCounts:
        """The same if each context (c,) is at another place, -1 for none."""
        context = place[self.context]
        kept = np.flatnonzero(context >= 0)
        return replace(taken(self, kept), context=context[kept])

    def with_copies(self, original: I64, first: int) -> VtableCounts:
        """These, and those of copies of contexts (k,), which are numbered from `first` on."""
        order = np.argsort(self.context, kind="stable")
        past = np.searchsorted(self.context[order], original, side="right")
        begin = np.searchsorted(self.context[order], original, side="left")
        rows = np.append(np.arange(len(self)), order[numbers_in(begin, past)])
        every = taken(self, rows)
        context = every.context.copy()
        context[len(self) :] = first + np.repeat(np.arange(len(original)), past - begin)
        return replace(every, context=context)

    def add_to(self, samples: Sequence[FunctionSamples]) -> None:
        """Add them to an object for each context."""
        columns = (self.context, self.line, self.discriminator, self.vtable, self.count)
        for context, line, discriminator, vtable, count in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            samples[context].add_vtable((line, discriminator), self.names[vtable], count)
