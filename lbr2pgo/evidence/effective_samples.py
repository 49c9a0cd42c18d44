"""How much observations of one branch tell, given that those of one sample are alike.

The entries of a stack are neighbours in time: a loop fills a stack with one branch, 32 times the
same way. Such a sample tells less than 32 independent ones. The *effective number* of observations
is what independent ones would be needed for the same certainty, found from how much the outcome
varies between samples (the ratio estimator of cluster sampling: W. G. Cochran, Sampling
Techniques, §2.11 and §9.3; for branches that always went one way, and as a lower bound for the
variance, L. Kish, Survey Sampling, §8.2: n²/Σn²).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lbr2pgo.evidence._moments import MOMENTS, MomentSums
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.evidence.sample_runs import RunRows, marked_before
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import F64, I32, I64, Bools
from lbr2pgo.support.tables import table, taken


@table
class Spread:
    """For each instruction of a flow, what part of its observations counts in full: (0, 1].

    Arrays of length m as `Flow.instructions`; 1 where nothing was observed.
    """

    outcome: F64
    """Of conditional branches, taken or not."""
    miss: F64
    """Of branches, mispredicted or not."""

    def of_instructions(self, rows: I64) -> Spread:
        """See `ByInstruction`."""
        return taken(self, rows)


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


class SpreadCollector:
    """Adds up how observations are spread over samples."""

    def __init__(self, flow: Flow) -> None:
        kind = flow.instructions.kind
        self._marked = kind == Kind.COND, (kind != Kind.OTHER) | (flow.ended > 0)
        conditional, end = map(marked_before, self._marked)
        self._outcomes = np.zeros((conditional[-1], MOMENTS))
        self._misses = np.zeros((end[-1], MOMENTS))
        self._sums = MomentSums(self._outcomes, self._misses)
        self._rows = RunRows(4, partial(rows_of, conditional, end))
        self._is_known = True

    def add(self, samples: Samples) -> None:
        """Look at the runs of a batch."""
        counted = samples.kinds[samples.spaces >= 0]
        self._is_known &= bool((counted == StackKind.CONSECUTIVE).all())
        runs = samples.runs
        rows = self._rows.of(runs.places)
        self._sums.add(rows, runs.run, runs.prediction, runs.sample, runs.weight)

    def merge(self, other: SpreadCollector) -> None:
        """Add what another one saw of the same code."""
        self._outcomes += other._outcomes
        self._misses += other._misses
        self._is_known &= other._is_known

    def result(self) -> Spread | None:
        """None if some entries are no neighbours in time, whose spread says nothing."""
        if not self._is_known:
            return None
        pairs = zip(self._marked, (self._outcomes, self._misses), strict=True)
        return Spread(*(_spread_out(*pair) for pair in pairs))


def rows_of(conditional: I32, end: I32, first: I64, last: I64) -> I32:
    """What `MomentSums` wants of runs (r,), given how many of each are before an instruction."""
    past, ends = conditional[last], end[last]
    taken = np.where(conditional[last + 1] > past, past, -1)
    ended = np.where(end[last + 1] > ends, ends, -1)
    return np.column_stack((conditional[first], past, taken, ended)).astype(np.int32)


def _spread_out(marked: Bools, moments: F64) -> F64:
    """(m,): what moments (k, 5) say of those of m that are marked; 1 of others."""
    part = np.ones(len(marked))
    part[marked] = effective_part(moments)
    return part


SPREAD = Finding("spread", lambda known: SpreadCollector(known.flow))
