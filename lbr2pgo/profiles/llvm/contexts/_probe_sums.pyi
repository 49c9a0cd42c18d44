from lbr2pgo.support.arrays import I32, I64, U64

def sums_of_probes(
    node: I64,
    first: I64,
    last: I64,
    count: U64,
    inline: I32,
    function: I64,
    slot: I64,
    bounds: I64,
) -> tuple[I64, I64, U64]:
    """How often each probe ran in each node, with a zero for those that stand by it and did not.

    node, first, last, count (r,): in which node the probes `first` to `last` ran how often.
    inline, function, slot (k,): of each probe the function that it was inlined with, the one around
    it, and its place among all of the former, which are from `bounds[inline]` to
    `bounds[inline + 1]`.

    Rows (p, 3): node, inlined function and function around it, in the order in which they come;
    offsets (p + 1,), which tell where the sums of each are; and these, which end at 2**64 - 1.
    IndexError for numbers that there aren't.
    """
