"""The fall-throughs of single samples, laid over the code: what stands together in one stack."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence._walks import list_runs
from lbr2pgo.model.branch_counts import Runs
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import Stacks
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.fusion import next_branches
from lbr2pgo.replay.replay import Judge
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import same_length, seal

_FEWEST = 1 << 10
"""Distinct runs that there is room for at first."""


@dataclass(frozen=True, slots=True)
class SampleRuns:
    """Runs of a batch of n samples; k rows, samples ascending, newest run of a sample first."""

    places: I64
    """(r, 2): of each different run, numbers of its first instruction in the flow and of its last
    one, a branch; -1 where it can't have run so."""
    run: I32
    """(k,): which of these."""
    prediction: U8
    """(k,): flags MISPREDICTED and PREDICTED of its branch; 0 where neither is known."""
    sample: I64
    """(k,)"""
    led_to: I64
    """(n,): the instruction that each sample's newest branch led to, -1 where none is known."""
    weight: U64
    """(n,): of each sample."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "run", "prediction", "sample")
        same_length(self, "led_to", "weight")

    @property
    def first(self) -> I64:
        """(k,): as `places`."""
        first: I64 = self.places[self.run, 0]
        return first

    @property
    def last(self) -> I64:
        """(k,): likewise."""
        last: I64 = self.places[self.run, 1]
        return last

    @property
    def valid(self) -> Bools:
        """(k,): whether it may have run so."""
        return self.first >= 0


class KnownRuns:
    """The fall-throughs of a source's samples, each laid over the code when it is met first.

    Memory grows with distinct ones only.
    """

    def __init__(self, spaces: AddressSpaces, code: InstructionTable) -> None:
        self.spaces, self._code, self._judge = spaces, code, Judge(code, None)
        self._numbers = RowIds()
        self._places = np.empty((_FEWEST, 2), np.int64)
        """As those of `SampleRuns`."""

    def of_samples(self, batch: BranchStacks, stacks: Stacks) -> SampleRuns:
        """Those of a batch, given its stacks as loops want them."""
        size, laid = len(batch.entries), len(self._numbers)
        run, sample = np.empty(size, np.int32), np.empty(size, np.int64)
        prediction, led_to = np.empty(size, np.uint8), np.full(len(batch), -1)
        found = list_runs(stacks, self._numbers, run, prediction, sample, led_to)
        run, sample, prediction = run[:found], sample[:found], prediction[:found]
        self._lay(laid)
        known = led_to >= 0
        led_to[known] = self._places[led_to[known], 0]
        places = self._places[: len(self._numbers)]
        return SampleRuns(places, run, prediction, sample, led_to, batch.weight)

    def _lay(self, laid: int) -> None:
        """Lay the new ones over the code: those with numbers from `laid` on."""
        size = len(self._numbers)
        if size > len(self._places):
            self._places = np.resize(self._places, (2 * size, 2))
        start, end, space = self._numbers.rows(laid).T
        ends = runtime_addresses(np.column_stack((start, end)))
        image, inside = self.spaces.runs_to_image(space.astype(np.int64), ends)
        judged = self._judge.of(Runs(image[:, 0], image[:, 1], np.ones(len(image), np.uint64)))
        valid = judged.valid & inside
        last = _at_their_branch(judged.last, valid, self._code)
        self._places[laid:size] = np.where(valid, (judged.first, last), -1).T


def _at_their_branch(last: I64, valid: Bools, instructions: InstructionTable) -> I64:
    """The last instructions of runs (k,), where one is the compare of a fused pair its branch."""
    rows = np.flatnonzero(valid)
    meant = next_branches(last[rows], instructions)
    fused = meant >= 0
    fused[fused] = instructions.kind[meant[fused]] == Kind.COND
    moved = last.copy()
    moved[rows[fused]] = meant[fused]
    return moved


def marked_before(marked: Bools) -> I32:
    """(m + 1,): how many marked ones of m are before each, and in all.

    >>> marked_before(np.array([False, True, False])).tolist()
    [0, 0, 1, 1]
    """
    before = np.zeros(len(marked) + 1, np.int32)
    np.cumsum(marked, out=before[1:])
    return before
