"""How observations of branches are spread over samples: sums that tell how alike a sample's are."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.support.arrays import F64, I64, U8, U64

MOMENTS = 5
"""Columns of a table of moments: sums over samples of n, t, n², t·n, t², where a sample saw a
branch n times, t of them with the outcome in question."""


@compiled_leaf
def _note(seen: I64, touched: I64, used: int, i: int, hit: int) -> int:
    """Note one observation of branch `i` in the current sample."""
    if seen[i, 0] == 0:
        touched[used] = i
        used += 1
    seen[i, 0] += 1
    seen[i, 1] += hit
    return used


@compiled_leaf
def _close(seen: I64, touched: I64, used: int, weight: float, moments: F64) -> None:
    """Add a sample's observations to the moments, and forget them."""
    for k in range(used):
        i = touched[k]
        n, t = float(seen[i, 0]), float(seen[i, 1])
        moments[i, 0] += weight * n
        moments[i, 1] += weight * t
        moments[i, 2] += weight * n * n
        moments[i, 3] += weight * t * n
        moments[i, 4] += weight * t * t
        seen[i, 0] = 0
        seen[i, 1] = 0


@compiled
def add_moments(
    first: I64,
    last: I64,
    missed: U8,
    sample: I64,
    weights: U64,
    next_conditional: I64,
    outcomes: F64,
    misses: F64,
) -> None:
    """Add a batch of runs, given by their first and last instructions, grouped by sample.

    first, last, missed, sample (k,), samples ascending; weights by sample. next_conditional
    (m + 1,): number of the first conditional branch at or behind each instruction, m if there is
    none. outcomes, misses (m, MOMENTS): of conditional branches, where the outcome in question is
    "taken", and of the branch at the end of each run, where it is "mispredicted".
    """
    size = len(outcomes)
    seen, ends = np.zeros((size, 2), np.int64), np.zeros((size, 2), np.int64)
    touched, ends_touched = np.zeros(size, np.int64), np.zeros(size, np.int64)
    used = ends_used = 0
    for k in range(len(first)):
        if k and sample[k] != sample[k - 1]:
            weight = float(weights[sample[k - 1]])
            _close(seen, touched, used, weight, outcomes)
            _close(ends, ends_touched, ends_used, weight, misses)
            used = ends_used = 0
        i = next_conditional[first[k]]
        while i <= last[k] and i < size:
            used = _note(seen, touched, used, i, 1 if i == last[k] else 0)
            i = next_conditional[i + 1]
        ends_used = _note(ends, ends_touched, ends_used, last[k], 1 if missed[k] else 0)
    if len(first):
        weight = float(weights[sample[len(first) - 1]])
        _close(seen, touched, used, weight, outcomes)
        _close(ends, ends_touched, ends_used, weight, misses)
