"""BOLT's fdata from counts: what perf2bolt 22 makes of the same samples.

Branches are written as they were seen, between functions and offsets, except returns: BOLT has
no use for them. A fall-through is written as the edges between the basic blocks that it passes;
BOLT's blocks, since it puts each edge at the last instruction of one and the first of another
(BOLT: DataAggregator.cpp, doBranch and getFallthroughsInTrace).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, OUTSIDE, RETURN, TO, BranchCounts, sum_by
from lbr2pgo.model.compat import NON_SIMPLE_LEFT_OUT, OURS, Compat
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    GLOBAL_SYMBOL,
    UNKNOWN,
    Fdata,
    FdataBranches,
    FdataEdges,
    FdataSamples,
    in_bolt_order,
)
from lbr2pgo.profiles.bolt.moved import Moved
from lbr2pgo.program.address_translation import AddressTranslation, open_translation
from lbr2pgo.program.blocks.basic_blocks import BasicBlocks
from lbr2pgo.program.blocks.binary_context import BinaryContext, analyze
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.sums import exact_sum
from lbr2pgo.support.tables import taken


def fdata_from_counts(
    counts: BranchCounts, program: Program, compat: Compat = OURS
) -> tuple[Fdata, Mapping[str, int]]:
    """Rows of fdata in BOLT's order, and what became of branches and runs.

    Only functions that counts name are disassembled. The tallies count branches and runs, each
    with the reasons for which some of them left no row.
    """
    context = analyze(program, _addresses(counts), keep_all=not compat.follows(NON_SIMPLE_LEFT_OUT))
    translation = open_translation(program.image)
    moved = Moved(context.functions, translation or AddressTranslation.empty())
    placed = _placed(counts, context)
    tallies: dict[str, int] = {}
    outside = "outside_functions" if program.symbols.are_complete else "no_symbols"
    edges = [
        moved.before(_branch_edges(counts, placed, context, outside, tallies)),
        *_run_edges(counts, placed, context, moved, compat, outside, tallies),
    ]
    return _fdata(edges, context.functions, bolted=translation is not None), tallies


def _addresses(counts: BranchCounts) -> PlacedAddresses:
    """Every address of the counts, once."""
    columns = ((counts.from_, FROM), (counts.to, TO), (counts.end, END))
    return distinct(np.concatenate([column[counts.has(bit)] for column, bit in columns]))


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the ends of traces (m,) lie."""

    source: I64
    """The function that each branch starts in, -1 for none."""
    target: I64
    """The function at each `to`, whether a branch or a run is known to reach it."""
    end: I64
    is_return: Bools
    """Whether each branch is a return, as the code says or the input knew."""


def _placed(counts: BranchCounts, context: BinaryContext) -> _Placed:
    functions, code = context.functions, context.code
    row = code.at(counts.from_)
    in_code = (row >= 0) & code.is_kind(Kind.RET)[row] if len(code) else row >= 0
    return _Placed(
        source=np.where(counts.has(FROM), functions.containing(counts.from_), -1),
        target=functions.containing(counts.to),
        end=functions.containing(counts.end),
        is_return=(counts.has(FROM) & in_code) | counts.has(RETURN),
    )


def _is_flagged(flags: Bools, functions: I64) -> Bools:
    """(m,): whether each function has a flag; no function (-1) has none."""
    flagged: Bools = np.append(flags, False)[functions]
    return flagged


class _Sieve:
    """Drops rows step by step, and tallies why."""

    def __init__(self, step: str, count: U64, rows: Bools, tallies: dict[str, int]) -> None:
        self.left = rows
        self._step, self._count, self._tallies = step, count, tallies

    def drop(self, reason: str, rows: Bools) -> None:
        """Drop those of the rows that are still there."""
        lost = self.left & rows
        self.left = self.left & ~rows
        self._tallies[f"{self._step}/{reason}"] = int(self._count[lost].sum())

    def finish(self) -> I64:
        """Rows that were not dropped."""
        self._tallies[self._step] = int(self._count[self.left].sum())
        return np.flatnonzero(self.left)


def _branch_edges(
    counts: BranchCounts, placed: _Placed, context: BinaryContext, outside: str,
    tallies: dict[str, int],
) -> FdataEdges:  # fmt: skip
    """The taken branches, but no returns and nothing that no function has to do with."""
    from_function, to_function = placed.source, np.where(counts.has(TO), placed.target, -1)
    sieve = _Sieve("fdata_branches", counts.count, counts.has(BRANCH), tallies)
    sieve.drop("returns", placed.is_return)
    sieve.drop(outside, (from_function < 0) & (to_function < 0))
    is_unwritable = context.functions.has_line_break
    is_lost = _is_flagged(is_unwritable, from_function) | _is_flagged(is_unwritable, to_function)
    sieve.drop("line_break", is_lost)
    kept = sieve.finish()
    return FdataEdges(
        from_function[kept],
        counts.from_[kept],
        to_function[kept],
        counts.to[kept],
        counts.mispredicted[kept],
        counts.count[kept],
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """Fall-throughs between two blocks of a function, and what is known of their branches."""

    start: PlacedAddresses
    function: I64
    first: I64
    """Block where the run begins."""
    last: I64
    """Block where it ends."""
    has_branch: Bools
    """Whether anything is known of the branch that led there."""
    after_return: Bools
    from_inside: Bools
    """Whether the branch stands in the same function."""
    count: U64

    def take(self, rows: I64) -> _Runs:
        return taken(self, rows)


def _run_edges(
    counts: BranchCounts,
    placed: _Placed,
    context: BinaryContext,
    moved: Moved,
    compat: Compat,
    outside: str,
    tallies: dict[str, int],
) -> tuple[FdataEdges, FdataEdges]:
    """The edges between blocks that fall-throughs pass, and in functions that BOLT moved."""
    functions, blocks = context.functions, context.blocks
    start, end = counts.to, counts.end
    function, other = placed.target, placed.end
    body = functions.end[function] if len(functions) else start
    first, last = blocks.containing(start, function), blocks.containing(end, other)
    sieve = _Sieve("fdata_runs", counts.count, counts.has(TO | END), tallies)
    sieve.drop(outside, (function < 0) | (other < 0))
    sieve.drop("two_functions", function != other)
    sieve.drop("line_break", _is_flagged(functions.has_line_break, function))
    sieve.drop("linkage_table", _is_flagged(functions.is_pseudo, function))
    was_moved = moved.holds(function)
    sieve.drop("non_simple", _is_flagged(~context.is_simple, function) & ~was_moved)
    is_blockless = (first < 0) | (last < 0) | (start >= body) | (end >= body)
    sieve.drop("no_block", is_blockless & ~was_moved)
    sieve.drop("backwards", end < start)
    rows = np.flatnonzero(sieve.left & was_moved)
    # A return lands behind its call, in the block of it.
    landed = start - placed.is_return.astype(np.uint64)
    elsewhere = moved.passed(function[rows], landed[rows], end[rows], counts.count[rows])
    stays = sieve.left & ~was_moved
    runs = _runs(counts, placed, functions, first, last).take(np.flatnonzero(stays))
    resumed = _resumed_blocks(runs, context, compat)
    barriers = np.concatenate([[0], np.cumsum(~blocks.falls)])
    broken = np.zeros(len(counts), np.bool_)
    broken[stays] = barriers[runs.last] != barriers[resumed]
    good = ~broken[stays]
    sieve.drop("broken", broken)
    sieve.finish()
    return _passed(resumed[good], runs.last[good], runs.count[good], blocks), elsewhere


def _runs(
    counts: BranchCounts, placed: _Placed, functions: BinaryFunctions, first: I64, last: I64
) -> _Runs:
    """All rows of counts as runs, whether they are any or not."""
    known = counts.has(BRANCH) | counts.has(RETURN) | counts.has(OUTSIDE)
    function = placed.target
    inside = (placed.source >= 0) & (placed.source == function)
    inside[inside] &= counts.from_[inside] < functions.end[function[inside]]
    return _Runs(
        counts.to,
        function,
        first,
        last,
        known,
        placed.is_return,
        inside,
        counts.count,
    )


def _resumed_blocks(runs: _Runs, context: BinaryContext, compat: Compat) -> I64:
    """The blocks where runs began, one earlier where a return landed on a block's start.

    The block before it ends in the call, and control passed from there to here. Entries and
    landing pads may be jumped to as well, so only a known return counts there. perf2bolt takes
    a branch from the same function for a jump even if it is a return: it misses the edge behind
    a recursive call.
    """
    blocks, first = context.blocks, runs.first
    if not len(first):
        return first
    own = runs.from_inside
    if not compat.follows(NON_SIMPLE_LEFT_OUT):
        own = own & ~runs.after_return
    may_resume = np.where(
        runs.after_return,
        runs.start != context.functions.start[runs.function],
        ~(blocks.is_entry | blocks.is_landing_pad)[first],
    )
    before = np.maximum(first - 1, 0)
    resumed = (
        runs.has_branch
        & ~own
        & (runs.start == blocks.start[first])
        & may_resume
        & blocks.falls[before]
        & blocks.ends_in_call[before]
        & (before < first)
    )
    return np.where(resumed, before, first)


def _passed(first: I64, last: I64, count: U64, blocks: BasicBlocks) -> FdataEdges:
    """How often control passed from each block to the next."""
    steps = np.zeros(len(blocks) + 1, np.uint64)
    np.add.at(steps, first, count)
    np.subtract.at(steps, last, count)
    passed = np.cumsum(steps)[:-1]
    at = np.flatnonzero(passed)
    return FdataEdges(
        blocks.function[at],
        blocks.last[at],
        blocks.function[at + 1],
        blocks.start[at + 1],
        np.zeros(len(at), np.uint64),
        passed[at],
    )


def _fdata(edges: list[FdataEdges], functions: BinaryFunctions, *, bolted: bool) -> Fdata:
    """Add up equal rows and name their places: as perf2bolt names those of a program like this."""
    from_function = np.concatenate([e.from_function for e in edges])
    to_function = np.concatenate([e.to_function for e in edges])
    from_offset = _offsets(np.concatenate([e.from_ for e in edges]), from_function, functions)
    to_offset = _offsets(np.concatenate([e.to for e in edges]), to_function, functions)
    keys, (mispredicted, count) = sum_by(
        [(from_function + 1).astype(np.uint64), from_offset,
         (to_function + 1).astype(np.uint64), to_offset],
        [np.concatenate([e.mispredicted for e in edges]), np.concatenate([e.count for e in edges])],
    )  # fmt: skip
    is_used = np.zeros(len(functions) + 1, np.bool_)  # the first one stands for none
    is_used[keys[0]] = is_used[keys[2]] = True
    used, place = np.flatnonzero(is_used), np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    names = tuple(functions.name(i - 1) if i else UNKNOWN for i in used.tolist())
    said = names
    if bolted:
        said = tuple(functions.names_with_files[i - 1] if i else UNKNOWN for i in used.tolist())
    return in_bolt_order(
        Fdata(
            said,
            branches=FdataBranches(
                (keys[0] > 0).astype(np.uint8),
                place[keys[0]],
                keys[1],
                (keys[2] > 0).astype(np.uint8),
                place[keys[2]],
                keys[3],
                mispredicted,
                count,
            ),
            bolted=bolted,
        ),
        names,
    )


def _offsets(addresses: PlacedAddresses, function: I64, functions: BinaryFunctions) -> U64:
    """Offsets in functions; 0 outside."""
    return np.where(function < 0, np.uint64(0), addresses - functions.start[function])


def fdata_of_samples(
    samples: InstructionCounts, program: Program, events: Sequence[str]
) -> tuple[Fdata, Mapping[str, int]]:
    """A row for each instruction that was sampled, and how many samples have one or have not.

    Without branches (`no_lbr`), as `perf2bolt -basic-events` makes it.
    Events stand in the file as perf script prints them, with a colon behind each.
    """
    functions = discover(program.image, program.symbols)
    function = functions.containing(samples.address)
    outside = function < 0
    unwritable = ~outside & np.append(functions.has_line_break, False)[function]
    rows = np.flatnonzero(~outside & ~unwritable)
    used, name = np.unique(function[rows], return_inverse=True)
    table = FdataSamples(
        np.full(len(rows), GLOBAL_SYMBOL, np.uint8),
        name.astype(np.int32),
        samples.address[rows] - functions.start[function[rows]],
        samples.count[rows],
    )
    reason = "outside_functions" if program.symbols.are_complete else "no_symbols"
    tallies = {
        "fdata_samples": exact_sum(samples.count[rows]),
        f"fdata_samples/{reason}": exact_sum(samples.count[outside]),
        "fdata_samples/line_break": exact_sum(samples.count[unwritable]),
    }
    names = tuple(map(functions.name, used.tolist()))
    said = tuple(f"{event}:" for event in events)
    return in_bolt_order(Fdata(names, samples=table, events=said)), tallies
