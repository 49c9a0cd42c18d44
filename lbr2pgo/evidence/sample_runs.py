"""The fall-throughs of single samples, laid over the code: what stands together in one stack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence._walks import CYCLES_BITS, list_runs
from lbr2pgo.model.branch_counts import Runs
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import Stacks
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.fusion import next_branches
from lbr2pgo.replay.replay import Judge
from lbr2pgo.support.addresses import RuntimeAddresses, runtime_addresses
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import same_length, seal

_FEWEST = 1 << 10
"""Distinct runs that there is room for at first."""


@dataclass(frozen=True, slots=True)
class SampleRuns:
    """Runs of a batch of n samples; k rows, samples ascending, newest run of a sample first.

    Runs are different that took another number of cycles.
    """

    places: I64
    """(r, 2): of each different run, numbers of its first instruction in the flow and of its last
    one, a branch; -1 where it can't have run so."""
    run: I32
    """(k,): which of these."""
    prediction: U8
    """(k,): flags MISPREDICTED and PREDICTED of its branch; 0 where neither is known."""
    prediction_of_both: U8
    """(k,): likewise of its branch and the one that led to its start: MISPREDICTED if one was,
    PREDICTED if both were."""
    sample: I64
    """(k,)"""
    led_to: I64
    """(n,): the instruction that each sample's newest branch led to, -1 where none is known."""
    weight: U64
    """(n,): of each sample."""
    reason: U8
    """(e,): of each entry of samples that count, a `Reason`."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "run", "prediction", "prediction_of_both", "sample")
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
        prediction, of_both, reason = np.empty((3, size), np.uint8)
        led_to = np.full(len(batch), -1)
        found = list_runs(stacks, self._numbers, run, prediction, of_both, sample, led_to, reason)
        self._lay(laid)
        known = led_to >= 0
        led_to[known] = self._places[led_to[known], 0]
        return SampleRuns(
            self._places[: len(self._numbers)],
            run[:found],
            prediction[:found],
            of_both[:found],
            sample[:found],
            led_to,
            batch.weight,
            reason,
        )

    def rows(self, first: int = 0) -> tuple[RuntimeAddresses, I64, U64]:
        """From a number on, in their order: run-time starts and ends (r, 2), spaces, cycles."""
        start, end, rest = self._numbers.rows(first).T
        space, cycles = rest >> np.uint64(CYCLES_BITS), rest & np.uint64((1 << CYCLES_BITS) - 1)
        return runtime_addresses(np.column_stack((start, end))), space.astype(np.int64), cycles

    def _lay(self, laid: int) -> None:
        """Lay the new ones over the code: those with numbers from `laid` on."""
        size = len(self._numbers)
        if size > len(self._places):
            self._places = np.resize(self._places, (2 * size, 2))
        ends, space, _ = self.rows(laid)
        image, inside = self.spaces.runs_to_image(space, ends)
        judged = self._judge.of(Runs(image[:, 0], image[:, 1], np.ones(len(image), np.uint64)))
        valid = judged.valid & inside
        last = _at_their_branch(judged.last, valid, self._code)
        self._places[laid:size] = np.where(valid, (judged.first, last), -1).T


class RunRows:
    """What is worked out once for each different run, when it is met first."""

    def __init__(self, width: int, work_out: Callable[[I64, I64], I32]) -> None:
        """Take what makes rows (r, width) of the first and last instructions (r,) of runs."""
        self._work_out, self._known = work_out, 0
        self._rows = np.empty((_FEWEST, width), np.int32)

    def of(self, places: I64) -> I32:
        """(r, width), given the places of all (r, 2); -1 for those that can't have run so."""
        size = len(places)
        if size > len(self._rows):
            self._rows = np.resize(self._rows, (2 * size, self._rows.shape[1]))
        first, last = places[self._known :].T
        valid, new = first >= 0, self._rows[self._known : size]
        new[:] = -1
        new[valid] = self._work_out(first[valid], last[valid])
        self._known = size
        return self._rows[:size]


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
