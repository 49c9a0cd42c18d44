from lbr2pgo.support.arrays import I32, I64, U8, U64

class ChainFollower:
    """Follows samples through their functions' blocks, from the oldest run to the newest."""

    def __init__(
        self,
        before: I32,
        owner: I64,
        slot: I64,
        is_entry: U8,
        functions: int,
        known: U64,
        went_on: U64,
    ) -> None:
        """Take a plan and the tables to add to, as in `evidence.path_counts`."""

    def follow(self, places: I64, run: I32, sample: I64, led_to: I64, weights: U64) -> None:
        """Follow the samples of a batch, in the columns of `evidence.sample_runs.SampleRuns`."""
