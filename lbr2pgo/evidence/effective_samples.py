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

from lbr2pgo.evidence.sample_runs import SampleRuns, next_marked
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import F64


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
    """Effective observations per observation, from moments (m, 5) of `native.moments`.

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

    def __init__(self, flow: Flow) -> None:
        from lbr2pgo.native.moments import MOMENTS

        size = len(flow.instructions)
        self.outcomes: F64 = np.zeros((size, MOMENTS))
        self.misses: F64 = np.zeros((size, MOMENTS))
        self._next = next_marked(flow.instructions.kind == Kind.COND)

    def add(self, runs: SampleRuns) -> None:
        """Look at the runs of a batch."""
        from lbr2pgo.native.moments import add_moments

        valid = runs.valid
        add_moments(
            runs.first[valid],
            runs.last[valid],
            runs.missed[valid],
            runs.sample[valid],
            runs.weight,
            self._next,
            self.outcomes,
            self.misses,
        )


def spread(tables: list[SpreadTable], size: int) -> Spread:
    """What all sources together say; as `no_spread` without any."""
    if not tables:
        return no_spread(size)
    outcomes = np.sum([table.outcomes for table in tables], axis=0)
    misses = np.sum([table.misses for table in tables], axis=0)
    return Spread(effective_part(outcomes), effective_part(misses))
