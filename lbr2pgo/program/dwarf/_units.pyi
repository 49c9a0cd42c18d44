from collections.abc import Iterable

import numpy as np

from lbr2pgo.support.arrays import I64, U64, Bytes, Records

# How reading a unit ended.
COMPLETE: int
DAMAGED: int
NO_DECLARATION: int
TOO_MANY_RANGES: int
ODD_FORM: int
"""An attribute has a form that is not known: nobody can tell how long it is."""

UNIT: np.dtype[np.void]
"""One unit: where its parts are, and what its header and root DIE say.

Strings are places (see `program.dwarf.section.Texts`), -1 where there is none.
"""
RANGE: np.dtype[np.void]
"""Addresses `low` to `high` (exclusive), and whose they are."""

class Sections:
    """The sections of a file that hold numbers, as (n,) u8; empty where it has none.

    Arrays are not copied, and live as long as this does. Of the two large ones only parts are
    given, which start at some position of a section of `size` bytes.
    """

    def __init__(
        self, abbrev: Bytes, addr: Bytes, ranges: Bytes, rnglists: Bytes, str_offsets: Bytes
    ) -> None: ...
    def with_info(self, part: Bytes, start: int, size: int) -> Sections:
        """The same with a part of .debug_info."""
    def with_line(self, part: Bytes, start: int, size: int) -> Sections:
        """The same with a part of .debug_line."""

class Abbreviations:
    """The tables of one .debug_abbrev that were read; units that refer to one table share it.

    Tables don't overlap, unless they are made to be read over and over: when there are more rows
    than the section has bytes, further tables are empty.
    """

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """Rows of all tables."""
    def load(self, sections: Sections, units: Records, wanted: Iterable[int]) -> None:
        """Read the tables of these rows of `units`, and note there where they are.

        Nobody may use the tables meanwhile.
        """

def read_units(
    sections: Sections, package: I64, position: int, before: int, budget: int, limit: int
) -> tuple[Records, Records, int, int, int]:
    """Headers and root DIEs that are in memory, from a position of .debug_info on.

    Rows of `UNIT`, and of `RANGE` what the root DIEs of other than type units claim, owned by their
    numbers, of which there were `before`; the next position; where the part of .debug_info must end
    that holds the next unit, 0 at the end and at a header that can't be one; and what is left of
    `budget`, bytes of .debug_abbrev to look at for root DIEs. No more than about `limit` ranges are
    made, because many hostile DIEs may share one long list.

    `package` is the index of a `.dwp` file, whose rows say where the parts of a unit start in
    .debug_info, by which they are sorted, .debug_abbrev, .debug_str_offsets and .debug_rnglists:
    (k, 4); outside of packages it has no rows.
    """

def read_aranges(section: Bytes) -> tuple[I64, Records]:
    """.debug_aranges: offsets (k,) of the units that it lists, and their ranges with those.

    Reading stops at the first set that is damaged or of a form that LLVM refuses.
    """

def resolve(starts: U64, ends: U64, units: I64, order: I64) -> Records:
    """Ranges free of overlaps, ascending, of (n,) claims that may overlap, each with its unit.

    Each stretch goes on belonging to the unit before it if that one claims it too, and to the first
    unit otherwise. `order` (2n,) sorts starts and ends together, numbered in this order.
    """
