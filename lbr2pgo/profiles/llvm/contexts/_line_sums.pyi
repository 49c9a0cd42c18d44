from lbr2pgo.support.arrays import I64, U64

def summed(group: I64, key: U64, count: U64, groups: int) -> tuple[I64, U64, U64]:
    """Sums of the counts (n,) of each group, from 0 to `groups` - 1, and key.

    Offsets (groups + 1,), which tell where those of each group are, keys (m,), ascending in each
    group, and sums (m,), which end at 2**64 - 1. IndexError for groups that there aren't.
    """

def rows_of(offsets: I64, keys: U64, group: I64, key: U64) -> I64:
    """(n,): where each group has a key, -1 where it does not; as `summed` orders them."""
