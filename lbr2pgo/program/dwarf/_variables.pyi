import numpy as np

from lbr2pgo.program.dwarf._units import Abbreviations, Sections
from lbr2pgo.support.arrays import Records

# Where the entry is that one refers to.
NOWHERE: int
HERE: int
"""At an offset in .debug_info."""
MOVED: int
"""At one in the supplementary file's."""
SIGNED: int
"""In the type unit with a signature."""

STATIC: np.dtype[np.void]
"""A variable that has an address of its own, and the offset of its DIE."""
ENTRY: np.dtype[np.void]
"""A DIE: its offset, and what it says of itself.

`name` is a place (see `program.dwarf.section.Texts`). `size` is in bytes, `place` where a member
starts in what it is in, in bytes, and `count` the elements of a dimension. All are -1 where they
are not known. Its type, or the one that it declares, is at `type`, an offset or a signature,
`where` that is; `origin` is the offset of the DIE that it completes, -1 if there is none in this
file.
"""

def static_variables(
    sections: Sections, units: Records, index: int, abbreviations: Abbreviations
) -> tuple[Records, int]:
    """A unit's variables that have an address: (rows of `STATIC`, how reading ended).

    In the order of the file; what stands before damage is kept. The unit's abbreviations must have
    been loaded.
    """

def entry_with_children(
    sections: Sections, units: Records, index: int, abbreviations: Abbreviations, offset: int
) -> Records:
    """The DIE at an offset of .debug_info, in the unit, and its children: rows of `ENTRY`.

    No rows if there is none; up to what can be read where they are damaged.
    """
