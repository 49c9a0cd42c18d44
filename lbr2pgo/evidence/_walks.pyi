from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I32, I64, U8

def count_cycles(stacks: Stacks, table: KeyTable) -> None:
    """Count runs under keys of start, end and cycles.

    Sums: how many, how many that ended mispredicted, and those of which that is not known.
    """

def list_runs(
    stacks: Stacks, known: RowIds, numbers: I32, predictions: U8, samples: I64, led_to: I64
) -> int:
    """Number all runs by start, end and space, newest first in each sample; how many there are.

    numbers, predictions, samples (m,): the run, the flags MISPREDICTED and PREDICTED of the branch
    at its end, and its sample. There is room for as many runs as there are entries. led_to (n,) is
    set for samples whose newest run ends with their newest entry: to the number of a run from
    where that entry led to the same address.
    """

def count_iterations(stacks: Stacks, table: KeyTable) -> None:
    """Count backward branches under keys of target, source, and cycles since the last time.

    Those within the image, where the time before is in the same stack of consecutive branches, and
    how long took all that was between is known: MISSING or SATURATED (`evidence.cycle_counts`)
    where the recorder does not say so of one.
    """

def list_duplicates(stacks: Stacks, samples: I64) -> int:
    """Write the numbers of samples (n,) whose second entry is a copy of the newest; how many."""
