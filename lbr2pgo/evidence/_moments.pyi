from lbr2pgo.support.arrays import F64, I32, I64, U8, U64

MOMENTS: int
"""Columns of a table of moments: sums over samples of n, t, n², t·n, t², where a sample saw a
branch n times, t of them with the outcome in question."""

class MomentSums:
    """Adds runs of samples to moments of their branches."""

    def __init__(self, outcomes: F64, misses: F64) -> None:
        """Take tables of MOMENTS columns to add to.

        `outcomes` has a row for each conditional branch, where the outcome in question is "taken",
        `misses` one for each instruction that may end a run, where it is "mispredicted".
        """

    def add(self, rows: I32, run: I32, prediction: U8, sample: I64, weights: U64) -> None:
        """Add a batch, in the columns of `evidence.sample_runs.SampleRuns`.

        rows (r, 4), by the number of a run: the first row of `outcomes` that it goes past and the
        one behind the last, the one that it takes, and the one of `misses` that it ends with; below
        0 where there is none.
        """
