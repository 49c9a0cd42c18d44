from lbr2pgo.support.arrays import F64, I64

def nearest_flow(
    nodes: I64,
    rows: I64,
    tail: I64,
    head: I64,
    count: I64,
    deviation: F64,
    widths: F64,
    prices: F64,
) -> I64:
    """The flow (m,) that takes the cheapest changes of counts in each of k networks.

    As much of it enters every node as leaves it; of several cheapest the same one every time.
    `nodes` and `rows` (k + 1,) are where each network's nodes and counts begin. Counts (m,) are of
    what goes from node `tail` to `head`. By the first of `widths` (s,) deviations each unit costs
    the first of `prices` by the deviation, at least 1, and so on; the last width should have no
    limit, and prices rise. A count of -1 is not known: each unit costs 1 by the deviation.

    Raises ValueError for a count between networks, and for deviations that are not positive.
    """

def merged(size: int, a: I64, b: I64) -> I64:
    """Numbers (n,) of groups of nodes, in the order of their first ones, each pair in one group.

    Raises ValueError for a node that is not there.
    """
