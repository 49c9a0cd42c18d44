from lbr2pgo.support.arrays import I64

def number_loops(first: I64, target: I64) -> I64:
    """(n,): number of the strongly connected piece with a cycle that each block is in; -1: of none.

    The edges of block i lead to `target[first[i]:first[i + 1]]`; first (n + 1,). A loop's number
    is below those of loops that lead to it. Raises IndexError for targets that are no blocks.
    """
