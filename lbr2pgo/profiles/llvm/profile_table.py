"""A sample profile in columns: what correlating makes, and what is written fastest.

`sample_profile` holds the same and more as a tree, with an object for every context. A large
program has hundreds of thousands of contexts, and most of its profile never needs the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.vtable_counts import VtableCounts
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.sums import add_at
from lbr2pgo.support.texts import Texts

# Compilers emit several functions of these names, whose profiles would be mixed up
# (LLVM: ProfileGeneratorBase::filterAmbiguousProfile).
_AMBIGUOUS_PREFIXES = (b"__cxx_global_var_init", b"__tls_init")


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

    @property
    def first_rows(self) -> I64:
        """(k,): of each context that has any location, the row of its first one."""
        return np.flatnonzero(begins(self.context))


@dataclass(frozen=True, slots=True)
class CallTargets:
    """Calls that were not inlined; (k,) each."""

    row: I64
    """Index into the body."""
    callee: I64
    count: U64

    def of_rows(self, size: int) -> U64:
        """How often each of so many rows of the body calls, (size,)."""
        called = np.zeros(size, np.uint64)
        add_at(called, self.row, self.count)
        return called


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """A profile without calling contexts in brackets."""

    names: Sequence[str]
    """No two the same."""
    contexts: Contexts
    body: Body
    calls: CallTargets
    is_fs: bool = False
    """Discriminators are flow-sensitive ones."""
    checksum: U64 | None = None
    """(n,), in profiles of pseudo probes: hash of the control flow of each context's function."""
    attributes: U8 | None = None
    """(n,): of each context, such as SHOULD_BE_INLINED; None where a pre-inliner has not been."""
    vtables: VtableCounts | None = None
    """None where they were not asked for."""

    def __len__(self) -> int:
        """How many functions stand alone."""
        return int((self.contexts.parent < 0).sum())

    def depth(self) -> I64:
        """(n,): 0 for functions that stand alone, 1 for what is inlined into them, and so on."""
        return depths(self.contexts.parent)

    def without(self, is_dropped: Bools) -> ProfileTable:
        """The same less some contexts, (n,), and all that stands below them."""
        if not is_dropped.any():
            return self
        kept = ~self.with_those_below(is_dropped)
        number = np.append(np.cumsum(kept) - 1, -1)  # the last one for a parent of -1
        body, calls = self.lines_of(kept)
        c = self.contexts
        return ProfileTable(
            self.names,
            Contexts(
                number[c.parent[kept]], c.line[kept], c.discriminator[kept],
                c.name[kept], c.total[kept], c.head[kept],
            ),
            replace(body, context=number[body.context]),
            calls,
            self.is_fs,
            None if self.checksum is None else self.checksum[kept],
            None if self.attributes is None else self.attributes[kept],
            self.vtables_at(np.where(kept, number[:-1], -1)),
        )  # fmt: skip

    def vtables_at(self, place: I64) -> VtableCounts | None:
        """The virtual tables if contexts (n,) are at other places, -1 for none."""
        return None if self.vtables is None else self.vtables.moved(place)

    def with_those_below(self, contexts: Bools) -> Bools:
        """(n,): these contexts, and what was inlined into them or called from them."""
        has_parent = self.contexts.parent >= 0
        for _ in range(int(self.depth().max(initial=0))):
            contexts = contexts | (has_parent & contexts[self.contexts.parent])
        return contexts

    def without_functions(self, is_dropped: Bools) -> ProfileTable:
        """The same less functions of some names, wherever they stand or are called."""
        kept = self.without(is_dropped[self.contexts.name])
        t = kept.calls
        rows = np.flatnonzero(~is_dropped[t.callee])
        calls = CallTargets(t.row[rows], t.callee[rows], t.count[rows])
        return replace(kept, calls=calls).with_used_names()

    def checksums_of(self, name: I64) -> U64 | None:
        """The checksums of functions by the numbers of their names, if there are any."""
        if self.checksum is None:
            return None
        by_name = np.zeros(len(self.names), np.uint64)
        by_name[self.contexts.name] = self.checksum
        found: U64 = by_name[name]
        return found

    def lines_of(self, is_kept: Bools) -> tuple[Body, CallTargets]:
        """The lines and calls of some contexts, (n,)."""
        b, t = self.body, self.calls
        rows = is_kept[b.context]
        number = np.cumsum(rows) - 1
        calls = rows[t.row]
        return (
            Body(b.context[rows], b.line[rows], b.discriminator[rows], b.count[rows]),
            CallTargets(number[t.row[calls]], t.callee[calls], t.count[calls]),
        )

    @property
    def is_ambiguous(self) -> Bools:
        """(n,): contexts of functions that several may be of one name."""
        names = Texts.of(self.names)
        ambiguous = np.logical_or.reduce([names.start_with(each) for each in _AMBIGUOUS_PREFIXES])
        found: Bools = ambiguous[self.contexts.name]
        return found

    def without_ambiguous(self) -> ProfileTable:
        """The same less functions that several may be of one name."""
        return self.without(self.is_ambiguous)

    def raise_to_calls(self) -> None:
        """Let a location have run at least as often as it called (LLVM: updateCallsiteSamples).

        As in LLVM, copies that were inlined are left as they are.
        """
        body = self.body
        called = self.calls.of_rows(len(body.count))
        is_alone = self.contexts.parent[body.context] < 0
        np.maximum(body.count, called, out=body.count, where=is_alone)

    def with_used_names(self) -> ProfileTable:
        """The same without names that nothing has."""
        used = np.zeros(len(self.names), np.bool_)
        used[self.contexts.name] = used[self.calls.callee] = True
        number = np.cumsum(used) - 1
        return replace(
            self,
            names=Texts.of(self.names).take(used),
            contexts=replace(self.contexts, name=number[self.contexts.name]),
            calls=replace(self.calls, callee=number[self.calls.callee]),
        )

    def tree(self) -> SampleProfile:
        """The same as an object for every context."""
        profile = SampleProfile(
            is_fs=self.is_fs,
            is_probe_based=self.checksum is not None,
            is_preinlined=self.attributes is not None,
        )
        self._fill(self._functions(profile))
        return profile

    def apart(self) -> list[FunctionSamples]:
        """An object for every context, without what is inlined there."""
        c = self.contexts
        columns = (column.tolist() for column in (c.name, c.total, c.head))
        names = tuple(self.names)
        samples = [
            FunctionSamples(names[name], total, head)
            for name, total, head in zip(*columns, strict=True)
        ]
        self._fill(samples)
        return samples

    def _fill(self, samples: Sequence[FunctionSamples]) -> None:
        """Give each context its body, its calls, its checksum and its attributes."""
        if self.checksum is not None:
            for function, checksum in zip(samples, self.checksum.tolist(), strict=True):
                function.checksum = checksum
        if self.attributes is not None:
            for function, attributes in zip(samples, self.attributes.tolist(), strict=True):
                function.attributes = attributes
        b, t, names = self.body, self.calls, tuple(self.names)
        places = list(zip(b.line.tolist(), b.discriminator.tolist(), strict=True))
        owners = [samples[context] for context in b.context.tolist()]
        for function, place, count in zip(owners, places, b.count.tolist(), strict=True):
            function.body[place] = count
        for row, callee, count in zip(
            t.row.tolist(), t.callee.tolist(), t.count.tolist(), strict=True
        ):
            owners[row].add_call(places[row], names[callee], count)
        if self.vtables is not None:
            self.vtables.add_to(samples)

    def _functions(self, profile: SampleProfile) -> list[FunctionSamples]:
        """One for each context, hung into its parent, without its body."""
        samples: dict[int, FunctionSamples] = {}
        c, names = self.contexts, tuple(self.names)
        columns = (c.parent, c.line, c.discriminator, c.name, c.total, c.head)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for i in np.argsort(self.depth(), kind="stable").tolist():
            parent, line, discriminator, name, total, head = rows[i]
            if parent < 0:
                samples[i] = profile.function(names[name])
            else:
                samples[i] = samples[parent].callee((line, discriminator), names[name])
            samples[i].total, samples[i].head = total, head
        return [samples[i] for i in range(len(rows))]


def depths(parent: I64) -> I64:
    """How many parents each of (n,) has above it, of which -1 is none."""
    depth = (parent >= 0).astype(np.int64)
    outer = parent.copy()
    rows = np.flatnonzero(outer >= 0)
    while len(rows):  # twice as far up each time
        depth[rows] += depth[outer[rows]]
        outer[rows] = outer[outer[rows]]
        rows = rows[outer[rows] >= 0]
    return depth
