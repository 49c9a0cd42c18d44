"""The straight runs of single samples, laid over the code: what stands together in one stack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.evidence.cycle_counts import image_runs
from lbr2pgo.model.branch_counts import Runs
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.runs import list_runs
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.fusion import next_branches
from lbr2pgo.replay.replay import Flow, judge
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools


@dataclass(frozen=True, slots=True)
class SampleRuns:
    """Runs of a batch of n samples; k rows, samples ascending, newest run of a sample first."""

    first: I64
    """(k,): number of the run's first instruction in the flow."""
    last: I64
    """(k,): of its last one, a branch."""
    valid: Bools
    """(k,): whether it may have run so; first and last mean nothing where it may not."""
    missed: U8
    """(k,): 1 where its branch was mispredicted."""
    sample: I64
    """(k,)"""
    led_to: I64
    """(n,): the instruction that each sample's newest branch led to, -1 where none is known."""
    weight: U64
    """(n,): of each sample."""


class RunReader:
    """Finds the runs in stacks of one source."""

    def __init__(self, flow: Flow, spaces: AddressSpaces) -> None:
        self._instructions = flow.instructions
        self._spaces = spaces
        self._bounds = spaces.bounds

    def runs(self, batch: BranchStacks, spaces: I64, kinds: U8) -> SampleRuns:
        """Those of a batch, given each sample's space and kind (`counting.Reading.batches`)."""
        raw = np.empty((len(batch.entries), 3), dtype=np.uint64)
        sample = np.empty(len(batch.entries), dtype=np.int64)
        found = list_runs(stacks_of(batch, spaces, kinds, self._bounds), raw, sample)
        raw, sample = raw[:found], sample[:found]
        first, last, valid = self._judge(raw, spaces[sample])
        missed = (raw[:, 2] != 0).astype(np.uint8)
        led_to = self._led_to(batch, spaces, raw, sample)
        return SampleRuns(first, last, valid, missed, sample, led_to, batch.weight)

    def _judge(self, raw: U64, space: I64) -> tuple[I64, I64, Bools]:
        """First and last instruction of each run (k,), and whether it is valid."""
        image, inside = image_runs(self._spaces, space, runtime_addresses(raw[:, :2]))
        ones = np.ones(len(raw), dtype=np.uint64)
        judged = judge(Runs(image[:, 0], image[:, 1], ones), self._instructions)
        valid = judged.valid & inside
        return judged.first, _at_their_branch(judged.last, valid, self._instructions), valid

    def _led_to(self, batch: BranchStacks, spaces: I64, raw: U64, sample: I64) -> I64:
        """Where the newest entry of each sample went, if the newest run ends with it."""
        found = np.full(len(batch), -1)
        newest = np.flatnonzero(np.diff(sample, prepend=-1))
        rows = sample[newest]
        entries = batch.entries[batch.offsets[rows]]
        image, inside = image_runs(
            self._spaces, spaces[rows], runtime_addresses(entries[:, [1, 1]])
        )
        known = inside & (raw[newest, 1] == entries[:, 0])
        found[rows] = np.where(known, self._instructions.index_of(image[:, 0]), -1)
        return found


def _at_their_branch(last: I64, valid: Bools, instructions: InstructionTable) -> I64:
    """The last instructions of runs (k,), where one is the compare of a fused pair its branch."""
    rows = np.flatnonzero(valid)
    meant = next_branches(last[rows], instructions)
    fused = meant >= 0
    fused[fused] = instructions.kind[meant[fused]] == Kind.COND
    moved = last.copy()
    moved[rows[fused]] = meant[fused]
    return moved


def next_marked(marked: Bools) -> I64:
    """(m + 1,): number of the first marked one of m at or behind each, else m.

    >>> next_marked(np.array([False, True, False])).tolist()
    [1, 1, 3, 3]
    """
    size = len(marked)
    found = np.full(size + 1, size, dtype=np.int64)
    rows = np.flatnonzero(marked)
    found[rows] = rows
    return np.minimum.accumulate(found[::-1])[::-1].copy()
