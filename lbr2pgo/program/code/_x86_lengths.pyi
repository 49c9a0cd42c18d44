from lbr2pgo.support.arrays import I16, I64, U8

def known_lengths(data: U8, bounds: I64, piece: int, at: int, sizes: I16) -> tuple[int, int, int]:
    """Lengths of x86-64 instructions, one behind the other, from data[at] on.

    Each piece of `data` lies between two of the ascending `bounds`; `at` is in the first of them,
    number `piece`. No instruction runs over a piece's end. Behind the last piece 16 bytes follow.

    Fills `sizes`, and stops where that is full, at an instruction whose length is not sure, or
    behind the last piece. Gives the piece and the place where it stopped, and how many sizes there
    are. Raises IndexError for other bounds.
    """
