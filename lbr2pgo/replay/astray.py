"""Direct branches that were recorded with another target than theirs.

The instruction says where it goes; a recorder that says something else is wrong, or looked at it
before it was done: emulators begin a block anew that they had left at the end of a page, and log a
jump from its last branch to itself. Code that is patched while it runs looks the same. What ran on
from the recorded target did run; the branch itself says nothing of its outcome.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import U8, U64, Bools


def lead_astray(
    from_: ImageAddresses, to: ImageAddresses, known: U8, instructions: InstructionTable
) -> Bools:
    """(n,): which branches start at a direct branch that goes elsewhere."""
    both = known & (FROM | TO) == FROM | TO
    place = np.where(both, instructions.index_of(from_), -1)
    found = place >= 0
    at = place[found]
    found[found] = instructions.has_target[at] & (instructions.target[at] != to[found])
    return found


def ended_astray(counts: BranchCounts, instructions: InstructionTable, ended: U64) -> U64:
    """(m,): how many of the runs that ended at each instruction were ended by such a branch.

    The oldest entry of a stack has no run before it, and the newest none behind it. One is as
    likely as the other, so those with a run behind them are as many as those with one before.
    """
    rows = counts.has(BRANCH | FROM | TO | END)
    rows[rows] = lead_astray(counts.from_[rows], counts.to[rows], counts.known[rows], instructions)
    total = np.zeros(len(instructions), np.uint64)
    np.add.at(total, instructions.index_of(counts.from_[rows]), counts.count[rows])
    return np.minimum(total, ended)
