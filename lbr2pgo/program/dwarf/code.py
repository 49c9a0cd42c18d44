"""The functions and inlined calls of one unit, and which of them an address is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.native import dwarf_dies, dwarf_inlining
from lbr2pgo.program.dwarf.container import Container
from lbr2pgo.support.arrays import I64, U64, Records

DEEPEST = 256
"""Frames of one address that are kept at most; compilers stop inlining long before."""

ENDINGS = {
    dwarf_dies.DAMAGED: "units cut off by damage in .debug_info",
    dwarf_dies.NO_DECLARATION: "units cut off by an abbreviation that is not declared",
    dwarf_dies.TOO_MANY_RANGES: "units cut off by more address ranges than the file can hold",
    dwarf_dies.UNKNOWN_FORM: "units cut off by an attribute form that is not known",
}
"""In words, how reading a unit ended if not at its end."""


@dataclass(frozen=True)
class Code:
    """Function DIEs of a unit, and the map from addresses to them."""

    container: Container
    dies: Records
    """(n,) rows of `dwarf_dies.DIE`."""
    function_ranges: tuple[U64, U64, I64]
    """Start, end and the DIE's offset of each range of a function that is not inlined, in the
    order of the DIEs."""
    starts: U64
    ends: U64
    owners: I64
    """Intervals by their starts, each with the row of the innermost DIE."""
    ending: int
    """`dwarf_dies.COMPLETE`, or a key of `ENDINGS`."""

    def leaves(self, addresses: U64) -> I64:
        """Row of the innermost DIE around each address, -1 where there is none."""
        if len(self.starts) == 0:
            return np.full(len(addresses), -1)
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (at >= 0) & (addresses < self.ends[at])
        return np.where(inside, self.owners[at], -1)

    def chains(self, leaves: I64) -> tuple[I64, npt.NDArray[Any], int]:
        """DIEs from each leaf out: (offsets (n + 1,), rows outermost first, chains cut)."""
        offsets, cut = dwarf_inlining.chain_lengths(leaves, self.dies, DEEPEST)
        return offsets, dwarf_inlining.fill_chains(leaves, self.dies, offsets), cut


def read_code(container: Container, unit: int) -> Code:
    """Decode the DIEs of a unit."""
    sections = container.sections
    # Lists of ranges are not shared: so many can't be there, unless one is used over and over.
    limit = 4096 + sum(len(s) for s in (sections.info, sections.ranges, sections.rnglists))
    dies, ranges, ending = dwarf_dies.walk_unit(
        sections, container.units[unit], container.declarations(unit), limit
    )
    keys, ranks = np.unique(ranges[:, :2].ravel(), return_inverse=True)
    # Each contiguous, whatever their number: other strides would be compiled anew.
    lows, highs = np.ascontiguousarray(ranks.reshape(-1, 2).T)
    rows = ranges[:, 2].astype(np.int64)
    ends, owners = dwarf_inlining.build_map(lows, highs, rows, len(keys))
    known = owners >= 0
    own = dies["is_subprogram"][rows]
    functions = ranges[own, 0], ranges[own, 1], dies["offset"][rows[own]]
    dies = dies.copy()  # a view of an array that was grown by doubling
    return Code(container, dies, functions, keys[known], keys[ends[known]], owners[known], ending)
