import numpy as np

from lbr2pgo.program.dwarf._units import Sections
from lbr2pgo.support.arrays import U64, Bytes, Records

ROW: np.dtype[np.void]
"""A row of the matrix: address, line, discriminator, file, column."""
SEQUENCE: np.dtype[np.void]
"""Addresses `low` to `high` (exclusive), rows `first` to `last`; the last one only ends it."""
NAME: np.dtype[np.void]
"""A directory or a file: `place` of its name, see `program.dwarf.section.Texts`, and a file's
`directory` and MD5 (`digest_low` and `digest_high`, in the section's bytes; 0 if none is said)."""
FOUND: np.dtype[np.void]
"""What a table says of an address: whether anything (`is_there`), file, line, discriminator and
column.

The file of what is not there has a number that no table has.
"""

def table_length(start: Bytes, most: int) -> int:
    """How many bytes a line table takes, at most so many; its 12 first are enough."""

def run_program(
    sections: Sections, units: Records, index: int, wanted: U64 | None
) -> tuple[int, Records, Records, Records, Records, bool] | None:
    """Run the line program of a unit; None if it has none that can be read.

    Its version, rows of `ROW`, of `SEQUENCE` in the order of the program, directories and files
    (rows of `NAME`), and whether it ran to its end. Files that the program itself defines, as old
    assemblers do, stand behind the others. If only some addresses are wanted, which must ascend,
    sequences without any of them have no rows.
    """

def look_up(
    addresses: U64, rows: Records, sequences: Records, first_file: int, past_file: int
) -> Records:
    """What the table says of each of (n,) addresses: rows of `FOUND`.

    Sequences must be sorted by their ends. Only the first that ends above the address is asked,
    and of its rows the last one at or below the address (LLVM: DWARFDebugLine.cpp
    lookupAddressImpl, findRowInSeq). A row whose file is not among the numbers given counts as
    none.
    """
