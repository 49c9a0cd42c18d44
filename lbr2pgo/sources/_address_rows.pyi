from lbr2pgo.support.arrays import U64

ADDRESS: int
RANGE: int
BRANCH: int
"""Forms of a row: `address:count`, `from-to:count`, `from->to:count`."""

def read_rows(text: bytes, place: int, form: int, rows: U64) -> tuple[int, int, int]:
    """Read as many lines as `rows`, (n, 3), holds, or as the text has, from `place` on.

    Fills from, to, count; to is 0 where there is none. Returns where it stopped, how many lines it
    went over, and how many of them are rows of this form, which `rows` starts with.
    """
