"""Samples by calling context, in columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.profiles.llvm.sample_names import Context, Frame
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.support.arrays import U8, Bools


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

    def without_ambiguous(self) -> ContextProfile:
        """The same less functions that several may be of one name."""
        kept = self.has_samples & ~self.table.is_ambiguous
        if kept.sum() == len(self):
            return self
        body, calls = self.table.lines_of(kept)
        return replace(self, table=replace(self.table, body=body, calls=calls), has_samples=kept)

    @property
    def names(self) -> tuple[str, ...]:
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
        """The same with an object for each context that has samples."""
        flat = self.table.apart()
        profile = SampleProfile(
            is_cs=True, is_fs=self.table.is_fs, is_probe_based=self.table.checksum is not None
        )
        for row, context in enumerate(self._contexts()):
            if self.has_samples[row]:
                samples = flat[row]
                samples.context, samples.attributes = context, int(self.attributes[row])
                profile.functions[context] = samples
        return profile

    def _contexts(self) -> list[Context]:
        contexts: list[Context] = []
        c = self.table.contexts
        columns = (c.parent, c.line, c.discriminator, c.name)
        for parent, line, discriminator, name in zip(*(x.tolist() for x in columns), strict=True):
            callers: Context = ()
            if parent >= 0:
                outer = contexts[parent]
                callers = (*outer[:-1], Frame(outer[-1].function, (line, discriminator)))
            contexts.append((*callers, Frame(self.table.names[name])))
        return contexts
