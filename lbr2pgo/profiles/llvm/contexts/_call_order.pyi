from lbr2pgo.support.arrays import I64

def strong_components(offsets: I64, targets: I64) -> tuple[I64, I64]:
    """Nodes (n,) by components, and the number of each one's component.

    Node `i` has edges to `targets[offsets[i]:offsets[i + 1]]`, each in 0 … n - 1. Components come
    after those that they lead to, and nodes of one in the order in which LLVM gives them
    (LLVM: include/llvm/ADT/SCCIterator.h), if its search begins at node 0.
    """
