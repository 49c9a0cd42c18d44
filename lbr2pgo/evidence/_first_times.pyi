from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.arrays import I64, U64

def note(
    number: I64, earliest: U64, step: U64, latest: U64, first: U64, first_step: U64, last: U64
) -> None:
    """Take times (n,) into those of m things, of which each time is of one, by its number.

    Of times that are equal, the smallest step counts. Raises IndexError for other numbers.
    """

def number_branches(offsets: I64, entries: U64, owner: I64, known: RowIds) -> I64:
    """(e,): the number of each of (e, 3) entries of stacks, among branches (from, to, owner).

    Stacks (n,) begin at `offsets` (n + 1,); -1 for entries of those whose owner is negative.
    Raises IndexError for offsets that are not theirs.
    """

def note_stacks(
    number: I64, offsets: I64, time: U64, first: U64, first_step: U64, last: U64
) -> None:
    """As `note`, of entries (e,) of stacks that were taken at a time each, newest first.

    The step of an entry's source is twice how many are older; those of number -1 don't count.
    """
