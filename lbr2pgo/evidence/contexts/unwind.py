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
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces, rows_by
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.evidence.contexts.known_calls import KnownCalls
from lbr2pgo.evidence.contexts.losses import MOST_FRAMES, tallies
from lbr2pgo.evidence.contexts.unwound_code import TouchedCode
from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.model.compat import CALLERS_AS_RECORDED
from lbr2pgo.model.context_counts import Callers, ContextBranches, ContextCounts, ContextRuns
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import ReplayOptions
from lbr2pgo.support.addresses import (
    ImageAddresses,
    image_addresses,
    image_array,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I32, I64, U8, U64

if TYPE_CHECKING:
    from lbr2pgo.evidence.contexts._unwinder import Unwinder


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
        self._is_plain = options.compat.follows(CALLERS_AS_RECORDED)
        self._code = TouchedCode(program, options, decoded)
        self._calls = KnownCalls(self._code, indirect_targets or {})
        self._unwinder = Unwinder(self._is_plain, MOST_FRAMES)

    def source(self, spaces: AddressSpaces) -> SourceTable:
        """The same for the samples of one source."""
        calls = None if self._is_plain else self._calls
        return SourceTable(self._unwinder, self._code, spaces, calls)

    def counts(self) -> ContextCounts:
        """What was counted."""
        from lbr2pgo.evidence.contexts._unwinder import FROM_OUTSIDE

        nodes, keys, count = self._unwinder.collapsed()
        parent = nodes[:, 0].astype(np.int64)
        parent[0] = -1
        node = (keys[:, 0] >> np.uint64(1)).astype(np.int64)
        is_branch = keys[:, 0] & np.uint64(1) == 1
        first, second = keys[:, 1], keys[:, 2]
        has_source = first[is_branch] != FROM_OUTSIDE
        from_ = np.where(has_source, first[is_branch], np.uint64(0))
        runs = (column[~is_branch] for column in (node, first, second, count))
        return ContextCounts(
            Callers(parent, image_addresses(nodes[:, 1].copy())),
            ContextRuns(*runs),
            ContextBranches(
                node[is_branch], from_, has_source, second[is_branch], count[is_branch]
            ),
            self.tallies(),
        )

    def tallies(self) -> Mapping[str, int]:
        """What became of samples, call stacks and runs: keys of `losses.STEPS`."""
        return tallies(self._unwinder.tallies())


class SourceTable:
    """Adds the samples of one source to a `ContextTable`."""

    def __init__(
        self,
        unwinder: Unwinder,
        code: TouchedCode,
        spaces: AddressSpaces,
        calls: KnownCalls | None,
    ) -> None:
        """`calls` tell what call stacks lack; None: nothing does."""
        from lbr2pgo.evidence.contexts._unwinder import outside_site
        from lbr2pgo.native.row_ids import RowIds

        self._unwinder, self._code, self._spaces = unwinder, code, spaces
        self._calls = calls
        self._doubts = unwinder.add_source()
        self._bounds = spaces.bounds
        self._sites = RowIds()
        outside_site(self._sites)
        self._places = code.places(image_array((0,)))
        """Of each site; those outside have the address 0."""

    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None:
        """Unwind the samples of a batch whose space is not negative; `kinds` as in `StackKind`."""
        chains = batch.chains or _no_chains(len(batch))
        entries = self._number(batch.entries, batch.offsets, spaces, 2)
        frames = self._number(chains.frames.reshape(-1, 1), chains.offsets, spaces, 1)
        self._resolve()
        stacks = stacks_of(batch, spaces, kinds, self._bounds)
        if self._calls is not None:
            pairs = self._unwinder.missing_pairs(stacks, entries, frames.ravel(), chains.offsets)
            call, inner, _ = pairs.rows().T
            known = self._calls.between(image_addresses(call.copy()), inner.astype(np.int64))
            self._unwinder.set_missing(pairs, known)
        self._unwinder.unwind(stacks, entries, frames.ravel(), chains.offsets, self._doubts)

    def _number(self, addresses: U64, offsets: I64, spaces: I64, columns: int) -> I32:
        from lbr2pgo.evidence.contexts._unwinder import number_sites

        return number_sites(self._sites, addresses, offsets, spaces, self._bounds, columns)

    def _resolve(self) -> None:
        """Find the code at new sites, and show the unwinder that of all.

        Its instructions are those at sites, and behind them the calls before each.
        """
        new = self._to_image(self._sites.rows()[len(self._places) :])
        self._code.touch(new[new > 0])
        self._places = self._places.with_more(self._code.places(new))
        places, number = self._places, np.arange(len(self._places))
        none = np.zeros_like(number)
        self._unwinder.set_code(
            np.concatenate((places.address, places.call)),
            np.concatenate((places.marks, none.astype(np.uint8))),
            np.concatenate((self._code.stops(places.address), none)),
        )
        self._unwinder.set_sites(
            np.where(places.is_code, number, -1),
            np.where(places.call > 0, len(places) + number, -1),
            places.function,
            places.callee,
        )

    def _to_image(self, sites: U64) -> ImageAddresses:
        image = image_addresses(np.zeros(len(sites), np.uint64))
        for space, rows in rows_by(sites[:, 0]):
            image[rows], _ = self._spaces.to_image(space, runtime_addresses(sites[rows, 1]))
        return image


def _no_chains(samples: int) -> CallChains:
    return CallChains(np.empty(0, np.uint64), np.zeros(samples + 1, np.int64))
