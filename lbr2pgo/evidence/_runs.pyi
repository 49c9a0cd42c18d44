from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I64, U64

def count_cycles(stacks: Stacks, table: KeyTable) -> None:
    """Count runs under keys of start, end and cycles.

    Sums: how many, how many that ended mispredicted, and those of which that is not known.
    """

def list_runs(stacks: Stacks, runs: U64, samples: I64) -> int:
    """Write all runs, newest first in each sample; how many there are.

    runs (m, 3): start, end, and the flags MISPREDICTED and PREDICTED of the branch at the end;
    samples (m,): the sample of each. There is room for as many runs as there are entries.
    """
