from collections.abc import Sequence

from lbr2pgo.support.arrays import U8, U64

NEWEST: int
"""The newest version that is read."""
RANGE_COLUMNS: int
BLOCK_COLUMNS: int
FINE: int
CUT: int
UNKNOWN_VERSION: int
UNKNOWN_FEATURE: int

def read_block_map(data: U8, has_versions: bool) -> tuple[U64, U64, Sequence[int]]:
    """Ranges (r, 3) and blocks (b, 6) of a section, and how the reading ended.

    A range has its function's number, its address, and where its last block ends, relative to it.
    A block has its range's number, its id, its address, its metadata, its hash (0 if there is
    none), and its size. `has_versions` is False for sections older than the first version, which
    have blocks alone. The third has one of FINE, CUT, UNKNOWN_VERSION and UNKNOWN_FEATURE; version
    and features of the last function; and the offset where it begins, or the end of the section.
    Functions from there on are left out.

    LLVM: lib/Object/ELF.cpp, decodeBBAddrMapImpl.
    """
