from lbr2pgo.support.arrays import I64, U64

def translate(spaces: I64, addresses: U64, offsets: I64, pieces: U64) -> tuple[U64, I64]:
    """Placed addresses (n, k), 0 outside, of run-time addresses, and each one's piece, -1 outside.

    Each row is of a space (n,), which has the pieces from `offsets[space]` on, up to the next
    one's; negative spaces have none. pieces (p, 3) have a start, an end and the bias, which is
    taken off; a space's ascend by their starts, and where they overlap, the later one counts.
    Raises IndexError for spaces beyond offsets, ValueError for other shapes.
    """
