"""A sample profile in columns: what correlating makes, and what is written fastest.

`sample_profile` holds the same and more as a tree, with an object for every context. A large
program has hundreds of thousands of contexts, and most of its profile never needs the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.support.arrays import I64, U64, Bools


@dataclass(frozen=True, slots=True)
class Contexts:
    """Functions, and functions inlined at a location of another context; (n,) each.

    No two have the same parent, location and name.
    """

    parent: I64
    """-1 for functions that stand alone."""
    line: I64
    discriminator: I64
    """Location in the parent at which it was inlined; zeros for functions that stand alone."""
    name: I64
    total: U64
    """Samples in the context and all that is inlined into it."""
    head: U64
    """Calls that were seen; 0 for inlined copies."""

    def __len__(self) -> int:
        return len(self.parent)


@dataclass(frozen=True, slots=True)
class Body:
    """Counts of locations; (m,) each, ordered by context, line and discriminator, each once."""

    context: I64
    line: I64
    discriminator: I64
    count: U64


@dataclass(frozen=True, slots=True)
class CallTargets:
    """Calls that were not inlined; (k,) each."""

    row: I64
    """Index into the body."""
    callee: I64
    count: U64


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """A profile without calling contexts, pseudo probes and virtual tables."""

    names: tuple[str, ...]
    """No two the same."""
    contexts: Contexts
    body: Body
    calls: CallTargets
    is_fs: bool = False
    """Discriminators are flow-sensitive ones."""

    def __len__(self) -> int:
        """How many functions stand alone."""
        return int((self.contexts.parent < 0).sum())

    def depth(self) -> I64:
        """(n,): 0 for functions that stand alone, 1 for what is inlined into them, and so on."""
        depth = np.zeros(len(self.contexts), np.int64)
        outer = self.contexts.parent
        while (outer >= 0).any():
            depth += outer >= 0
            outer = np.where(outer >= 0, self.contexts.parent[outer], -1)
        return depth

    def without(self, is_dropped: Bools) -> ProfileTable:
        """The same less some contexts, (n,), and all that was inlined into them."""
        if not is_dropped.any():
            return self
        for _ in range(int(self.depth().max(initial=0))):
            has_parent = self.contexts.parent >= 0
            is_dropped = is_dropped | (has_parent & is_dropped[self.contexts.parent])
        kept = ~is_dropped
        number = np.append(np.cumsum(kept) - 1, -1)  # the last one for a parent of -1
        rows = kept[self.body.context]
        row_number = np.cumsum(rows) - 1
        calls = rows[self.calls.row]
        c, b, t = self.contexts, self.body, self.calls
        return ProfileTable(
            self.names,
            Contexts(
                number[c.parent[kept]], c.line[kept], c.discriminator[kept],
                c.name[kept], c.total[kept], c.head[kept],
            ),
            Body(number[b.context[rows]], b.line[rows], b.discriminator[rows], b.count[rows]),
            CallTargets(row_number[t.row[calls]], t.callee[calls], t.count[calls]),
            self.is_fs,
        )  # fmt: skip

    def with_used_names(self) -> ProfileTable:
        """The same without names that nothing has."""
        of_contexts, of_calls = self.contexts.name, self.calls.callee
        used, number = np.unique(np.concatenate((of_contexts, of_calls)), return_inverse=True)
        return replace(
            self,
            names=tuple(self.names[i] for i in used.tolist()),
            contexts=replace(self.contexts, name=number[: len(of_contexts)]),
            calls=replace(self.calls, callee=number[len(of_contexts) :]),
        )

    def tree(self) -> SampleProfile:
        """The same as an object for every context."""
        profile = SampleProfile(is_fs=self.is_fs)
        self._fill_bodies(self._functions(profile))
        return profile

    def apart(self) -> list[FunctionSamples]:
        """An object for every context, without what is inlined there."""
        c = self.contexts
        columns = (column.tolist() for column in (c.name, c.total, c.head))
        samples = [
            FunctionSamples(self.names[name], total, head)
            for name, total, head in zip(*columns, strict=True)
        ]
        self._fill_bodies(samples)
        return samples

    def _fill_bodies(self, samples: Sequence[FunctionSamples]) -> None:
        b, t = self.body, self.calls
        places = list(zip(b.line.tolist(), b.discriminator.tolist(), strict=True))
        owners = [samples[context] for context in b.context.tolist()]
        for function, place, count in zip(owners, places, b.count.tolist(), strict=True):
            function.body[place] = count
        for row, callee, count in zip(
            t.row.tolist(), t.callee.tolist(), t.count.tolist(), strict=True
        ):
            owners[row].add_call(places[row], self.names[callee], count)

    def _functions(self, profile: SampleProfile) -> list[FunctionSamples]:
        """One for each context, hung into its parent, without its body."""
        samples: dict[int, FunctionSamples] = {}
        c = self.contexts
        columns = (c.parent, c.line, c.discriminator, c.name, c.total, c.head)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for i in np.argsort(self.depth(), kind="stable").tolist():
            parent, line, discriminator, name, total, head = rows[i]
            if parent < 0:
                samples[i] = profile.function(self.names[name])
            else:
                samples[i] = samples[parent].callee((line, discriminator), self.names[name])
            samples[i].total, samples[i].head = total, head
        return [samples[i] for i in range(len(rows))]
