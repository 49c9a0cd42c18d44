from lbr2pgo.support.arrays import U64

KNOWN_BITS: int
"""Loops make a key's last number of `space << KNOWN_BITS | known`, with what is known of the other
three (such as FROM) in that space."""

class KeyTable:
    """Three sums under each key of four numbers.

    Sums are exact (modulo 2**64) and independent of the order in which they are added; memory grows
    with distinct keys only, of which there may be 2**32. Loops fill it without the GIL, each table
    in one thread at a time.
    """

    def __len__(self) -> int: ...
    def add(self, keys: U64, sums: U64) -> None:
        """Add to the sums of keys (n, 4), which may repeat, n sums (n, 3)."""

    def rows(self) -> tuple[U64, U64]:
        """Keys (n, 4) and their sums (n, 3), in the order in which they first came."""
