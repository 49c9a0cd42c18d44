"""From samples with call stacks to `ContextCounts`.

A call stack shows who called the function that was interrupted; going back through the branch
stack beside it, returns and calls show who called whatever ran before::

    call stack    c+4 (leaf), main+9 (behind the call of c)
    e0  c -> c+4         a jump within c
    e1  main+4 -> c      the call: before it, main itself ran
    e2  b+8 -> main+2    b's return behind its call at main: before it, b ran, called by main

LLVM: tools/llvm-profgen/PerfReader.cpp, whose rules these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.contexts.known_calls import KnownCalls
from lbr2pgo.evidence.contexts.losses import MOST_FRAMES, tallies
from lbr2pgo.evidence.contexts.unwound_code import TouchedCode
from lbr2pgo.model.branch_stacks import CallChains
from lbr2pgo.model.compat import CALLERS_AS_RECORDED
from lbr2pgo.model.context_counts import Callers, ContextBranches, ContextCounts, ContextRuns
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import ReplayOptions
from lbr2pgo.support.addresses import (
    placed_addresses,
    placed_array,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I32, I64, U64
from lbr2pgo.support.tables import stacked
from lbr2pgo.support.threads import distribute, threads

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Samples
    from lbr2pgo.evidence.contexts._unwinder import SourceDoubts

_AT_ONCE = 512
"""Samples that a thread unwinds before it asks for more."""


class ContextTable:
    """Unwinds the samples of one source after another; memory grows with distinct contexts."""

    def __init__(
        self,
        program: Program,
        options: ReplayOptions | None = None,
        indirect_targets: Mapping[int, Sequence[int]] | None = None,
        decoded: InstructionTable | None = None,
    ) -> None:
        """`indirect_targets` are those of `Flow.indirect_targets`, and `decoded` its instructions.

        Both may be left out.
        """
        from lbr2pgo.evidence.contexts._unwinder import Unwinder

        options = options or ReplayOptions()
        is_plain = options.compat.follows(CALLERS_AS_RECORDED)
        self.code = TouchedCode(program, options, decoded)
        self.calls = None if is_plain else KnownCalls(self.code, indirect_targets or {})
        """What call stacks lack; None: nothing tells."""
        self.unwinders = [Unwinder(is_plain, MOST_FRAMES) for _ in range(threads())]
        self._sources: list[list[SourceDoubts]] = []

    def source(self, spaces: AddressSpaces) -> ContextCollector:
        """What adds the samples of one source."""
        self._sources.append([unwinder.add_source() for unwinder in self.unwinders])
        return ContextCollector(self, spaces, self._sources[-1])

    def counts(self) -> ContextCounts:
        """What was counted."""
        from lbr2pgo.evidence.contexts._unwinder import FROM_OUTSIDE, judge
        from lbr2pgo.native.row_ids import RowIds

        for doubts in self._sources:
            judge(doubts)
        nodes, root = RowIds(), np.zeros(1, np.uint64)
        nodes.number_rows(root, root)
        found = [unwinder.counted(unwinder.places_in(nodes)) for unwinder in self.unwinders]
        has_run, ran_in, has_branch, left_in, source, start, end, count = map(
            np.concatenate, zip(*found, strict=True)
        )
        # Their code is looked up again and again: what ascends is found in a fraction of the time.
        run, branch = np.flatnonzero(has_run), np.flatnonzero(has_branch)
        run, branch = run[np.argsort(start[run])], branch[np.argsort(source[branch])]
        parent, call, _ = nodes.rows().T
        parent = parent.astype(np.int64)
        parent[0] = -1
        has_source = source[branch] != FROM_OUTSIDE
        from_ = placed_addresses(np.where(has_source, source[branch], np.uint64(0)))
        return ContextCounts(
            Callers(parent, placed_addresses(call.copy())),
            ContextRuns(
                ran_in[run], placed_addresses(start[run]), placed_addresses(end[run]), count[run]
            ),
            ContextBranches(
                left_in[branch], from_, has_source, placed_addresses(start[branch]), count[branch]
            ),
            self.tallies(),
        )

    def tallies(self) -> Mapping[str, int]:
        """What became of samples, call stacks and runs: keys of `losses.STEPS`."""
        return tallies(np.sum([unwinder.tallies() for unwinder in self.unwinders], axis=0))


class ContextCollector:
    """Adds the samples of one source to a `ContextTable`, which is that of all sources."""

    def __init__(
        self, table: ContextTable, spaces: AddressSpaces, doubts: list[SourceDoubts]
    ) -> None:
        """`doubts` are those of each of the table's unwinders."""
        from lbr2pgo.evidence.contexts._unwinder import outside_site
        from lbr2pgo.native.row_ids import RowIds

        self._table, self._spaces = table, spaces
        self._unwinders, self._code, self._calls = table.unwinders, table.code, table.calls
        self._doubts = doubts
        self._sites = RowIds()
        outside_site(self._sites)
        self._places = self._code.places(placed_array((0,)))
        """Of each site; those outside have the address 0."""
        self._stops, self._code_size = self._code.stops(self._places.address), self._code.size

    def add(self, samples: Samples) -> None:
        """Unwind the samples of a batch."""
        batch, spaces, stacks = samples.batch, samples.spaces, samples.stacks
        chains = batch.chains or _no_chains(len(batch))
        entries = self._number(batch.entries, batch.offsets, spaces, 2)
        frames = self._number(chains.frames.reshape(-1, 1), chains.offsets, spaces, 1)
        self._resolve()
        if self._calls is not None:
            pairs = self._unwinders[0].missing_pairs(
                stacks, entries, frames.ravel(), chains.offsets
            )
            call, inner, _ = pairs.rows().T
            known = self._calls.between(placed_addresses(call.copy()), inner.astype(np.int64))
            for unwinder in self._unwinders:
                unwinder.set_missing(pairs, known)
        workers = [
            partial(unwinder.unwind, stacks, entries, frames.ravel(), chains.offsets, doubts)
            for unwinder, doubts in zip(self._unwinders, self._doubts, strict=True)
        ]
        distribute(pairwise([*range(0, len(batch), _AT_ONCE), len(batch)]), workers)

    def merge(self, other: ContextCollector) -> None:
        """Nothing is left to do: the table is the same."""

    def result(self) -> ContextCounts:
        """What all sources told."""
        return self._table.counts()

    def _number(self, addresses: U64, offsets: I64, spaces: I64, columns: int) -> I32:
        from lbr2pgo.evidence.contexts._unwinder import number_sites

        return number_sites(self._sites, addresses, offsets, spaces, self._spaces.bounds, columns)

    def _resolve(self) -> None:
        """Find the code at new sites, and show the unwinder that of all.

        Its instructions are those at sites, and behind them the calls before each.
        """
        space, address = self._sites.rows()[len(self._places) :, :2].T
        new, _ = self._spaces.to_image(space.astype(np.int64), runtime_addresses(address))
        self._code.touch(new[new > 0])
        known, self._places = len(self._places), stacked([self._places, self._code.places(new)])
        places, number = self._places, np.arange(len(self._places))
        if self._code.size > self._code_size:  # also by what call stacks were found to lack
            self._stops, self._code_size = self._code.stops(places.address), self._code.size
        else:
            self._stops = np.concatenate((self._stops, self._code.stops(places.address[known:])))
        none = np.zeros_like(number)
        code = (
            np.concatenate((places.address, places.call)),
            np.concatenate((places.marks, none.astype(np.uint8))),
            np.concatenate((self._stops, none)),
            np.concatenate((places.target, none.astype(np.uint64))),
        )
        row = np.where(places.is_code, number, -1)
        call = np.where(places.call > 0, len(places) + number, -1)
        for unwinder in self._unwinders:
            unwinder.set_code(*code)
            unwinder.set_sites(row, call, places.function, places.callee)


def _no_chains(samples: int) -> CallChains:
    return CallChains(np.empty(0, np.uint64), np.zeros(samples + 1, np.int64))
