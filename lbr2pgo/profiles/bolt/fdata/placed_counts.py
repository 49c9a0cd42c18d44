"""What ran, of a profile that BOLT reads: branches as they stand there, and runs through blocks.

Such a profile says how often control passed from block to block. A block ran as often as control
came to it or left it, whichever is told more often: returns are not told. Which run went on from
which branch is not told either; see `runs_between`.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, FROM, TO, BranchCounts, aggregate, no_counts
from lbr2pgo.model.count_sums import merge
from lbr2pgo.profiles.bolt.fdata.fdata_tables import NOT_A_SYMBOL, Fdata
from lbr2pgo.program.blocks.binary_context import BinaryContext, analyze
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.code.instructions import CALLS, ENDS_LINE
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.flow_traces import runs_between
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools
from lbr2pgo.support.distinct import distinct, place_of
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.sums import sums_at


def counts_of_fdata(fdata: Fdata, program: Program) -> BranchCounts:
    """Branches and runs of a program, of those rows whose places it has."""
    branches, build_id = fdata.branches, program.image.build_id
    if branches is None or not len(branches):
        return no_counts(build_id)
    functions = discover(program.image, program.symbols)
    starts = functions.starts_of(fdata.names, bolted=fdata.bolted)
    from_, has_from = _places(
        starts, branches.from_is_symbol, branches.from_name, branches.from_offset
    )
    to, has_to = _places(starts, branches.to_is_symbol, branches.to_name, branches.to_offset)
    every = distinct(np.concatenate([from_[has_from], to[has_to]]))
    context = analyze(program, every, keep_all=True)
    if not len(context.blocks):
        return no_counts(build_id)
    passes = has_from & has_to & _go_on(context, from_, to)
    known = BRANCH | np.where(has_from, FROM, 0) | np.where(has_to, TO, 0)
    rows = np.flatnonzero(~passes & (has_from | has_to))
    nowhere = placed_addresses(np.zeros(len(rows), np.uint64))
    taken = aggregate(
        from_[rows], to[rows], nowhere, known[rows].astype(np.uint8), branches.count[rows],
        branches.mispredicted[rows], build_id=build_id,
    )  # fmt: skip
    start, end = _borders(context, passes, from_, to, branches.count)
    runs = runs_between(start, end, context.code.address)
    straight = aggregate(*runs, np.zeros(len(runs[0]), np.uint64), build_id=build_id)
    return merge([taken, straight])


def _places(starts: I64, kind: U8, name: I32, offset: U64) -> tuple[PlacedAddresses, Bools]:
    start = starts[name]
    is_known = (kind != NOT_A_SYMBOL) & (start >= 0)
    return placed_addresses(np.where(is_known, start.astype(np.uint64) + offset, 0)), is_known


def _go_on(context: BinaryContext, from_: PlacedAddresses, to: PlacedAddresses) -> Bools:
    """(m,): whether control went on from a block to the next one, and did not jump."""
    code = context.code
    row, place = code.at(from_), place_of(from_, context.blocks.last)
    is_next = to == from_ + code.size[row]
    goes_on: Bools = (place >= 0) & is_next & ~code.is_kind(*ENDS_LINE)[row]
    return goes_on


def _borders(
    context: BinaryContext, passes: Bools, from_: PlacedAddresses, to: PlacedAddresses, count: U64
) -> tuple[I64, I64]:
    """(n,) each: how many runs start, and end, at each instruction.

    A call inside a block ends a run, as where all branches are recorded.
    """
    code, blocks = context.code, context.blocks
    amount = count.astype(np.int64)
    first, last = code.at(blocks.start), code.at(blocks.last)
    passed = sums_at(place_of(from_, blocks.last), amount * passes, len(blocks))
    entered = sums_at(place_of(to, blocks.start), amount * ~passes, len(blocks))
    row = code.at(from_)
    jumps = ~passes & (row >= 0) & ~code.is_kind(*CALLS)[row]
    left = sums_at(last_at_or_below(blocks.start, from_), amount * jumps, len(blocks))
    into = np.concatenate([[0], passed[:-1]])
    ran = np.maximum(entered + into, left + passed)
    start, end = np.zeros(len(code), np.int64), np.zeros(len(code), np.int64)
    start[first], end[last] = ran - into, ran - passed
    block = last_at_or_below(first, np.arange(len(code)))
    inner = np.flatnonzero(code.is_kind(*CALLS))
    inner = inner[inner < last[block[inner]]]
    end[inner] = start[inner + 1] = ran[block[inner]]
    return start, end
