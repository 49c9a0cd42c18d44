from lbr2pgo.support.arrays import I64

def solve(nodes: I64, arcs: I64, supply: I64, tail: I64, head: I64, room: I64, cost: I64) -> I64:
    """The cheapest flow (m,) in each of k networks; of several the same one every time.

    `nodes` and `arcs` (k + 1,) are where each network's nodes and arcs begin. `supply` (n,) is
    what each node has to give, negative for what it needs, in all 0 in each network. Arcs (m,) go
    from `tail` to `head`, carry at most `room` and cost `cost`, not negative, a unit.

    Raises ValueError for an arc between networks, and where the supply can't be carried.
    """
