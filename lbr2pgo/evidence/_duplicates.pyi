from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I64

def list_duplicates(stacks: Stacks, samples: I64) -> int:
    """Write the numbers of samples (n,) whose second entry is a copy of the newest; how many."""
