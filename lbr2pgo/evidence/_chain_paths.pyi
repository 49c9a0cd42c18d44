from lbr2pgo.support.arrays import I32, I64, U64

class ChainFollower:
    """Follows samples through their functions' blocks, from the oldest run to the newest."""

    def __init__(self, blocks: I32, functions: int, known: U64, went_on: U64) -> None:
        """Take blocks, and the tables to add to, as in `evidence.path_counts`.

        blocks (b, 3): the function of each, its slot, and whether the function is entered there.
        """

    def follow(self, rows: I32, run: I32, sample: I64, led_to: I32, weights: U64) -> None:
        """Follow the samples of a batch, in the columns of `evidence.sample_runs.SampleRuns`.

        rows (r, 2), by the number of a run: its first block, and the one behind its last; below 0
        where it can't have run so. led_to (n,): the block that each sample's newest branch led to,
        below 0 where none is known.
        """
