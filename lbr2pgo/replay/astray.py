"""Entries that no branch can have made: the instruction goes elsewhere, or is no branch.

The instruction says where it goes; a recorder that says something else is wrong, or looked at it
before it was done: emulators begin a block anew that they had left at the end of a page, and log a
jump from its last branch to itself. An interrupt or a fault comes from any instruction. Code that
is patched while it runs looks the same. Such an entry is lost. What ran on from the recorded target
did run.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, Branches, aggregate
from lbr2pgo.model.waterfall import merge
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import U8, U64, Bools
from lbr2pgo.support.sums import exact_sum
from lbr2pgo.support.tables import taken


def lead_astray(
    from_: PlacedAddresses, to: PlacedAddresses, known: U8, instructions: InstructionTable
) -> Bools:
    """(n,): which branches start at a direct branch that goes elsewhere, or at none."""
    place = instructions.covering(from_)
    found: Bools = (known & (FROM | TO) == FROM | TO) & (place >= 0)
    at = place[found]
    goes_elsewhere = instructions.has_target[at] & (instructions.target[at] != to[found])
    is_none = (instructions.kind[at] == Kind.OTHER) | (instructions.address[at] != from_[found])
    found[found] = goes_elsewhere | is_none
    return found


def without_astray(
    counts: BranchCounts, instructions: InstructionTable
) -> tuple[BranchCounts, Branches]:
    """Counts and tallies less the branches that lead astray, and these branches.

    Fall-throughs behind them stay, of an unknown branch. The very same object comes back where
    nothing is lost.
    """
    astray = counts.has(BRANCH | FROM | TO)
    astray[astray] = lead_astray(
        counts.from_[astray], counts.to[astray], counts.known[astray], instructions
    )
    lost = taken(counts, astray).branches()
    if not len(lost):
        return counts, lost
    zero = np.uint64(0)
    left = aggregate(
        counts.from_, counts.to, counts.end,
        np.where(astray, np.uint8(TO | END), counts.known),
        np.where(astray & ~counts.has(END), zero, counts.count),
        np.where(astray, zero, counts.mispredicted),
        np.where(astray, zero, counts.prediction_unknown),
        build_id=counts.build_id,
    )  # fmt: skip
    tallies = merge(counts.tallies, {"branches_in_image/astray": exact_sum(lost.count)})
    return replace(left, tallies=tallies | {"branches_in_image": left.branch_total()}), lost


def ended_astray(lost: Branches, instructions: InstructionTable, taken: U64, ended: U64) -> U64:
    """(m,): how many of the runs that ended at each instruction were ended by such a branch.

    `taken` is how often each instruction branched and `ended` how many runs ended there, (m,)
    both. The oldest entry of a stack has no run before it: those that have one are the same part
    of the lost branches as of the others.
    """
    total = np.zeros(len(instructions), np.uint64)
    np.add.at(total, instructions.index_of(lost.from_), lost.count)
    for row in np.flatnonzero(total).tolist():
        strays, runs = int(total[row]), int(ended[row])
        total[row] = min(strays, strays * runs // (strays + int(taken[row])))
    return total
