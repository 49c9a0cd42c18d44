from lbr2pgo.support.arrays import I64, U64

def layout(
    function: I64, size: U64, count: U64, offsets: I64, source: I64, target: I64, weight: U64
) -> I64:
    """Blocks of each function in the order that lets the most weight fall through.

    `function` (f + 1,) says where the blocks of each function begin; the first of each is its
    entry, and stays the first. `size` is in bytes and `count` how often each block ran, (b,) each.
    Edge `i` of the function `k`, with `offsets[k] <= i < offsets[k + 1]`, leads from block
    `source[i]` to `target[i]`; (k,) each. Gives (b,): block numbers, function by function.

    Newell and Pupyrev, "Improved Basic Block Reordering" (IEEE TC 2020); LLVM:
    lib/Transforms/Utils/CodeLayout.cpp, whose weights and limits these are. Raises IndexError
    where an edge leaves its function.
    """

def score(address: U64, size: U64, source: I64, target: I64, weight: U64, outs: I64) -> float:
    """What is gained by a layout: the sum over edges of a share of the weight.

    `address` and `size` are the blocks', `outs` how many edges lead out of each. All of the weight
    where the target is the next block (5 % more if the source has no other edge), a tenth of it,
    less with the distance, for jumps up to 1,024 bytes forward or 640 back.
    """
