from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I32, I64, U8, U64

CYCLES_BITS: int
"""`list_runs` numbers runs by start, end and `space << CYCLES_BITS | cycles`."""

def list_runs(
    stacks: Stacks,
    known: RowIds,
    numbers: I32,
    predictions: U8,
    predictions_of_both: U8,
    samples: I64,
    led_to: I64,
    reasons: U8,
) -> int:
    """Number all runs by start, end, space and cycles, newest first in each sample; how many.

    numbers, predictions, predictions_of_both, samples (m,): the run, the flags MISPREDICTED and
    PREDICTED of the branch at its end, and of it and the one that led to the run together, and its
    sample. There is room for as many runs as there are entries. led_to (n,) is set for samples
    whose newest run ends with their newest entry: to the number of a run from where that entry led
    to the same address. reasons (m,) is set for each entry of samples that count: its `Reason`.
    """

def add_runs(numbers: I32, predictions: U8, samples: I64, weights: U64, sums: U64) -> None:
    """Add the weights (n,) of samples (k,) to the sums (r, 3) of runs (k,), by number.

    Sums: how many, how many that were mispredicted, and those of which that is not known.
    """

def count_iterations(stacks: Stacks, reasons: U8, table: KeyTable) -> None:
    """Count backward branches under keys of target, source, and cycles since the last time.

    Those within the image, where the time before is in the same stack of consecutive branches, and
    how long took all that was between is known: MISSING or SATURATED (`evidence.cycle_counts`)
    where the recorder does not say so of one. reasons (m,): of each entry, as of `list_runs`.
    """

def list_duplicates(stacks: Stacks, samples: I64) -> int:
    """Write the numbers of samples (n,) whose second entry is a copy of the newest; how many."""
