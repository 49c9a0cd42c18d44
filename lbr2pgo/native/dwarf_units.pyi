from collections.abc import Iterable

import numpy as np

from lbr2pgo.support.arrays import I64, U8, U64, Bytes, Records

UNIT: np.dtype[np.void]
"""One unit: where its parts are, and what its header and root DIE say.

Strings are places (see `dwarf_texts`), -1 where there is none.
"""
RANGE: np.dtype[np.void]
"""Addresses `low` to `high` (exclusive), and whose they are."""

class Sections:
    """The sections of a file that hold numbers, as (n,) u8; empty where it has none.

    They are not copied, and live as long as this does.
    """

    def __init__(
        self,
        info: Bytes,
        abbrev: Bytes,
        addr: Bytes,
        ranges: Bytes,
        rnglists: Bytes,
        str_offsets: Bytes,
        line: Bytes,
    ) -> None: ...

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

def read_units(sections: Sections, package: I64) -> tuple[Records, int]:
    """Headers and root DIEs: (rows of `UNIT`, bytes of .debug_info behind the last header).

    Reading stops at a header that can't be one. `package` is the index of a `.dwp` file, whose
    rows say where the parts of a unit start in .debug_info, by which they are sorted,
    .debug_abbrev, .debug_str_offsets and .debug_rnglists: (k, 4); outside of packages it has no
    rows.
    """

def unit_ranges(sections: Sections, units: Records, wanted: U8, limit: int) -> Records:
    """Ranges of the root DIEs of those units that `wanted` (n,) marks, with the units' rows.

    No more than about `limit` are made, because many hostile DIEs may share one long list.
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
