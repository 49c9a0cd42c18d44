import numpy as np

from lbr2pgo.program.dwarf._units import Abbreviations, Sections
from lbr2pgo.support.arrays import I64, U64, Records

DIE: np.dtype[np.void]
"""A DIE of a function or of an inlined call: its offset, and whether it is a function.

`parent` is the row of the nearest such DIE around it, -1 if there is none; parents stand before
their children.
"""
DESCRIPTION: np.dtype[np.void]
"""What a DIE says, or the first that does on the way to its origin and specification.

`linkage_name` and `name` are places (see `program.dwarf.section.Texts`), -1 if there is none. Of
the call that was inlined (`call_file`, `call_line`, `discriminator`) only the DIE itself speaks.
Numbers are 0 where they are not known. `elsewhere` is where in .debug_info, but in another unit,
the way goes on, and `moved` where in the supplementary file's; -1 if it does not.
"""
UNDESCRIBED: np.void
"""The description of what is no DIE."""

def subprogram_ranges(
    sections: Sections, units: Records, index: int, abbreviations: Abbreviations, limit: int
) -> tuple[Records, int]:
    """Ranges of a unit's functions that are not inlined: (rows of `RANGE`, how reading ended).

    With the offsets of their DIEs, in the order of these. What stands before damage is kept.
    About `limit` are made at most. The unit's abbreviations must have been loaded.
    """

def functions_around(
    sections: Sections,
    units: Records,
    index: int,
    abbreviations: Abbreviations,
    addresses: U64,
    limit: int,
) -> tuple[Records, Records, int]:
    """Functions of a unit that hold some of (k,) ascending addresses, with all inlined in them.

    Rows of `DIE` and of `RANGE`, the latter with rows of the former, both in the order of the
    file, and how reading ended; see `subprogram_ranges`.
    """

def innermost(ranges: Records, bounds: U64, addresses: U64) -> I64:
    """Owner of the innermost range around each of (k,) ascending addresses, -1 if there is none.

    The map is LLVM's, insertion by insertion: where ranges nest, the innermost wins; where they
    overlap otherwise (folded code, damage), the outcome depends on their order. `bounds` are all
    lows and highs, each once, ascending.
    """

def describe(
    sections: Sections, units: Records, index: int, abbreviations: Abbreviations, offsets: I64
) -> Records:
    """What the DIEs at (n,) offsets of .debug_info, all of one unit, say: rows of `DESCRIPTION`."""
