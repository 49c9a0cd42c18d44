from lbr2pgo.support.arrays import I64, U64

class RowIds:
    """Numbers distinct rows of three integers 0, 1, 2 … in the order in which they come.

    At most 2**30 rows, 40 bytes each.
    """

    used: int
    """How many there are."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def rows(self, first: int = 0) -> U64:
        """(used - first, 3): the rows from a number on, in their order."""

    def number_rows(self, a: U64, b: U64, third: U64 | None = None) -> I64:
        """Number of each row, given in columns (n,); zeros stand for a third one."""

class RowSums:
    """Adds counts up under rows of three integers; memory as of `RowIds`, and 8 bytes each."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def rows(self) -> U64:
        """(n, 3): the rows, in the order in which they came."""

    def counts(self) -> U64:
        """(n,): the sum of each."""

    def find_rows(self, a: U64, b: U64, c: U64) -> I64:
        """Number of each row (k,), given in columns; -1 for those that have no sum."""

    def add_rows(self, a: U64, b: U64, c: U64, count: U64) -> None:
        """Add to the rows given in columns (k,)."""

    def add_ranges(self, a: U64, first: I64, last: I64, count: U64) -> None:
        """Add each of k counts to the rows (a, first, 0), (a, first + 1, 0) … (a, last, 0)."""
