from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools

READ: int
OTHER_EVENT: int
OTHER_PROCESS: int
NOT_CHOSEN: int
NO_STACK: int
NOT_MAPPED: int
BESIDE: int

def select(
    event: I32,
    weight: U64,
    wanted: Bools | U8,
    is_own: Bools,
    is_chosen: Bools,
    has_stack: Bools,
    spaces: I64,
) -> U64:
    """Give samples (n,) that are not to be counted the space -1, in place.

    `wanted` (e + 1,) are events, the last for samples that don't say theirs, of which the number is
    negative; samples of those that are `BESIDE` are neither counted nor lost. The other flags (n,)
    are of each sample. Returns the weight of all under `READ`, and of those lost under the first of
    the other steps at which they were. Raises IndexError for an event that isn't there.
    """

def count_entries(weight: U64, whole: I64, kept: I64, spaces: I64) -> tuple[int, int]:
    """Entries of samples (n,) in a space, as often as they weigh: all, and those not kept.

    `whole` and `kept` (n + 1,) are offsets of their stacks, and of what is kept of them.
    """
