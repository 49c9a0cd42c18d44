from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.walk import Stacks

def count_iterations(stacks: Stacks, table: KeyTable) -> None:
    """Count backward branches under keys of target, source, and cycles since the last time.

    Those within the image, where the time before is in the same stack of consecutive branches, and
    how long took all that was between is known: MISSING or SATURATED (`evidence.cycle_counts`)
    where the recorder does not say so of one.
    """
