"""Branches that were recorded at the compare before them.

AMD's processors execute a compare and the conditional branch behind it as one operation, and may
record it at the compare's address. The branch that is meant is the next one within the length of
one instruction more (Linux: arch/x86/events/utils.c, branch_type_fused; newer kernels repair this
themselves where branches of all types are recorded). That the branch goes where the entry says
tells a fused pair from an interrupt, on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.support.addresses import PlacedAddresses, placed_array
from lbr2pgo.support.arrays import I64, Bools

FUSED = "branches_fused"
"""Key of the tally: branches that were moved to where they belong."""

_REACH = np.uint64(15)
"""Length of the longest instruction of x86: so far Linux looks on, in bytes."""
_LONGEST_WALK = 4
"""Instructions; a compare is followed by its branch, or by very few."""


def unfused(counts: BranchCounts, instructions: InstructionTable) -> tuple[BranchCounts, int]:
    """The same counts, with branches moved from the compare to the branch that was meant.

    Also how many were moved. Fall-throughs that end at such a compare end at its branch. The very
    same object comes back where there is nothing to move.
    """
    branches = counts.branches()
    both = branches.known & (FROM | TO) == FROM | TO
    moved = _moved(branches.from_[both], branches.to[both], instructions)
    if not moved:
        return counts, 0
    from_, left = _replaced(counts.from_, counts.has(FROM | TO | BRANCH), moved, counts.to)
    ends = {source: target for (source, _), target in moved.items()}
    end = placed_array(ends.get(address, address) for address in counts.end.tolist())
    end = np.where(counts.has(END), end, counts.end)
    values = (counts.count, counts.mispredicted, counts.prediction_unknown)
    merged = aggregate(
        from_, counts.to, end, counts.known, *values,
        build_id=counts.build_id, tallies=counts.tallies,
    )  # fmt: skip
    return merged, int(counts.count[left].sum())


def _moved(
    sources: PlacedAddresses, targets: PlacedAddresses, instructions: InstructionTable
) -> dict[tuple[int, int], int]:
    """The branch that is meant, by the (source, target) that was recorded, where that is none."""
    first = instructions.index_of(sources)
    meant = next_branches(first, instructions)
    known = meant >= 0
    known[known] = _goes_to(instructions, meant[known], targets[known])
    rows = np.flatnonzero(known)
    pairs = zip(sources[rows].tolist(), targets[rows].tolist(), strict=True)
    return dict(zip(pairs, instructions.address[meant[rows]].tolist(), strict=True))


def next_branches(first: I64, instructions: InstructionTable) -> I64:
    """(n,): the next branch behind each instruction that is none; -1 where there is none."""
    found = np.full(len(first), -1, dtype=np.int64)
    size = len(instructions)
    open_ = first >= 0
    open_[open_] = instructions.kind[first[open_]] == Kind.OTHER
    for step in range(1, _LONGEST_WALK + 1):
        rows = np.flatnonzero(open_ & (first + step < size))
        at = first[rows] + step
        near = (instructions.run[at] == instructions.run[first[rows]]) & (
            instructions.address[at] - instructions.address[first[rows]] < _REACH
        )
        is_branch = near & (instructions.kind[at] != Kind.OTHER)
        found[rows[is_branch]] = at[is_branch]
        open_ = np.zeros(len(first), dtype=np.bool_)
        open_[rows[near & ~is_branch]] = True
    return found


def _goes_to(instructions: InstructionTable, at: I64, targets: PlacedAddresses) -> Bools:
    """Whether these instructions are conditional branches to these targets."""
    is_cond = instructions.kind[at] == Kind.COND
    found: Bools = is_cond & instructions.has_target[at] & (instructions.target[at] == targets)
    return found


def _replaced(
    column: PlacedAddresses,
    rows: Bools,
    moved: Mapping[tuple[int, int], int],
    targets: PlacedAddresses,
) -> tuple[PlacedAddresses, Bools]:
    """The column with the sources of `moved` replaced, and which rows were."""
    pairs = zip(column.tolist(), targets.tolist(), strict=True)
    new = placed_array(moved.get(pair, pair[0]) for pair in pairs)
    changed: Bools = rows & (new != column)
    return np.where(changed, new, column), changed
