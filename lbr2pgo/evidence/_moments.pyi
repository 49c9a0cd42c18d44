from lbr2pgo.support.arrays import F64, I64, U8, U64

MOMENTS: int
"""Columns of a table of moments: sums over samples of n, t, n², t·n, t², where a sample saw a
branch n times, t of them with the outcome in question."""

def add_moments(
    first: I64,
    last: I64,
    prediction: U8,
    sample: I64,
    weights: U64,
    next_conditional: I64,
    outcomes: F64,
    misses: F64,
) -> None:
    """Add a batch of runs, given by their first and last instructions, grouped by sample.

    first, last, prediction, sample (k,), samples ascending; weights by sample. next_conditional
    (m + 1,): number of the first conditional branch at or behind each instruction, m if there is
    none. outcomes, misses (m, MOMENTS): of conditional branches, where the outcome in question is
    "taken", and of the branch at the end of each run, where it is "mispredicted". `prediction`
    holds the flags MISPREDICTED and PREDICTED of that branch; without any, it tells nothing.
    """
