from lbr2pgo.support.arrays import I64, U64

def note(
    number: I64, earliest: U64, step: U64, latest: U64, first: U64, first_step: U64, last: U64
) -> None:
    """Take times (n,) into those of m things, of which each time is of one, by its number.

    Of times that are equal, the smallest step counts. Raises IndexError for other numbers.
    """
