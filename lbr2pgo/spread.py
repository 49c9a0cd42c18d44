"""How much observations of one branch tell, given that those of one sample are alike.

The entries of a stack are neighbours in time: a loop fills a stack with one branch, 32 times the
same way. Such a sample tells less than 32 independent ones. The *effective number* of observations
is what independent ones would be needed for the same certainty, found from how much the outcome
varies between samples (the ratio estimator of cluster sampling: W. G. Cochran, Sampling
Techniques, §2.11 and §9.3; for branches that always went one way, and as a lower bound for the
variance, L. Kish, Survey Sampling, §8.2: n²/Σn²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lbr2pgo.address_spaces import AddressSpaces
from lbr2pgo.counts import U8, Bools, Runs
from lbr2pgo.cycle_counts import image_runs
from lbr2pgo.fusion import next_branches
from lbr2pgo.program.instructions import InstructionTable, Kind
from lbr2pgo.replay import Flow, judge
from lbr2pgo.stacks import I64, U64, BranchStacks

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """For each instruction of a flow, what part of its observations counts in full: (0, 1].

    Arrays of length m as `Flow.instructions`; 1 where nothing was observed.
    """

    outcome: F64
    """Of conditional branches, taken or not."""
    miss: F64
    """Of branches, mispredicted or not."""


def no_spread(size: int) -> Spread:
    """As if all observations were independent, for inputs that don't hold samples."""
    return Spread(np.ones(size), np.ones(size))


def effective_part(moments: F64) -> F64:
    """Effective observations per observation, from moments (m, 5) of `kernels.spread`.

    A sample that saw a branch ten times the same way counts like one:

    >>> effective_part(np.array([[20.0, 10.0, 200.0, 100.0, 100.0]])).tolist()
    [0.1]
    """
    n, t, nn, tn, tt = moments.T
    with np.errstate(divide="ignore", invalid="ignore"):
        share = t / n
        independent = share * (1 - share) / n
        between = (tt - 2 * share * tn + share * share * nn) / (n * n)
        variance = np.maximum(between, share * (1 - share) * nn / (n * n))
        part = np.where((t > 0) & (t < n), independent / variance, n / nn)
    found: F64 = np.where(n > 0, np.clip(part, 0, 1), 1.0)
    return found


class SpreadTable:
    """Adds up how observations are spread, over all samples of one source."""

    def __init__(self, flow: Flow, spaces: AddressSpaces) -> None:
        from lbr2pgo.kernels.spread import MOMENTS

        size = len(flow.instructions)
        self.outcomes: F64 = np.zeros((size, MOMENTS))
        self.misses: F64 = np.zeros((size, MOMENTS))
        self._instructions = flow.instructions
        self._next = _next_conditional(flow.instructions)
        self._spaces = spaces
        self._bounds = spaces.bounds

    def add(self, batch: BranchStacks, spaces: I64, modes: U8) -> None:
        """Look at a batch, given each sample's space and mode (`counting.Reading.batches`)."""
        from lbr2pgo.kernels import neighbours
        from lbr2pgo.kernels.spread import add_moments

        runs = np.empty((len(batch.entries), 4), dtype=np.uint64)
        samples = np.empty(len(batch.entries), dtype=np.int64)
        found = neighbours.list_runs(
            batch.entries, batch.offsets, spaces, modes, self._bounds, runs, samples
        )
        runs, samples = runs[:found], samples[:found]
        first, last, valid = self._judge(runs, spaces[samples])
        missed = (runs[:, 3] != 0).astype(np.uint8)
        add_moments(
            first[valid],
            last[valid],
            missed[valid],
            samples[valid],
            batch.weight,
            self._next,
            self.outcomes,
            self.misses,
        )

    def _judge(self, runs: U64, space: I64) -> tuple[I64, I64, Bools]:
        """First and last instruction of each run (k,), and whether it is valid."""
        image, inside = image_runs(self._spaces, space, runs[:, 0], runs[:, 1])
        ones = np.ones(len(runs), dtype=np.uint64)
        judged = judge(Runs(image[:, 0], image[:, 1], ones), self._instructions)
        valid = judged.valid & inside
        return judged.first, _at_their_branch(judged.last, valid, self._instructions), valid


def _at_their_branch(last: I64, valid: Bools, instructions: InstructionTable) -> I64:
    """The last instructions of runs (k,), where one is the compare of a fused pair its branch."""
    rows = np.flatnonzero(valid)
    meant = next_branches(last[rows], instructions)
    fused = meant >= 0
    fused[fused] = instructions.kind[meant[fused]] == Kind.COND
    moved = last.copy()
    moved[rows[fused]] = meant[fused]
    return moved


def spread(tables: list[SpreadTable], size: int) -> Spread:
    """What all sources together say; as `no_spread` without any."""
    if not tables:
        return no_spread(size)
    outcomes = np.sum([table.outcomes for table in tables], axis=0)
    misses = np.sum([table.misses for table in tables], axis=0)
    return Spread(effective_part(outcomes), effective_part(misses))


def _next_conditional(instructions: InstructionTable) -> I64:
    """(m + 1,): number of the first conditional branch at or behind each instruction, else m."""
    size = len(instructions)
    found = np.full(size + 1, size, dtype=np.int64)
    rows = np.flatnonzero(instructions.kind == Kind.COND)
    found[rows] = rows
    return np.minimum.accumulate(found[::-1])[::-1].copy()
