from lbr2pgo.support.arrays import F64, I32, I64, U8, U64

MOMENTS: int
"""Columns of a table of moments: sums over samples of n, t, n², t·n, t², where a sample saw a
branch n times, t of them with the outcome in question."""

class MomentSums:
    """Adds runs of samples to moments of their branches."""

    def __init__(self, next_conditional: I64, outcomes: F64, misses: F64) -> None:
        """Take tables (m, MOMENTS) to add to, by instruction.

        `outcomes` is of conditional branches, where the outcome in question is "taken", `misses`
        of the branch at the end of each run, where it is "mispredicted". next_conditional (m + 1,):
        number of the first conditional branch at or behind each instruction, m if there is none.
        """

    def add(self, places: I64, run: I32, prediction: U8, sample: I64, weights: U64) -> None:
        """Add a batch, in the columns of `evidence.sample_runs.SampleRuns`."""
