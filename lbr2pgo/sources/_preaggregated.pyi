from typing import NamedTuple

from lbr2pgo.support.arrays import U8, U64

class Rows(NamedTuple):
    """The n rows of a text."""

    kind: U8
    """(n,): the row's letter."""
    address: U64
    """(n, 3): as they stand in the row; 0 where it has fewer."""
    image: U64
    """(n, 3): hash of the build-id before each address, 0 where there is none."""
    amount: U64
    """(n,): the row's count."""
    mispredicted: U64
    """(n,)"""
    images: dict[int, bytes]
    """Build-ids by their hashes."""
    bad_lines: int
    """Lines that are no rows, blank lines, comments (`#`) and names of events apart."""

def read_rows(text: bytes) -> Rows:
    """Read whole lines."""
