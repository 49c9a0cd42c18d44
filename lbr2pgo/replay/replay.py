"""Lay counts over the code: what ran, how often, and which fall-throughs can't be true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import END, FROM, TO, BranchCounts, Branches, Runs
from lbr2pgo.model.compat import (
    ASTRAY_COUNT,
    CALLS_END_RUNS,
    FUSED_STAY,
    JUMPS_TO_NEXT_END_RUNS,
    OURS,
    TRAPS_DONT_END_RUNS,
    Compat,
)
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.astray import ended_astray, without_astray
from lbr2pgo.replay.fusion import FUSED, unfused
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.tables import same_length, seal

# A recorder of all branches would have logged these; but a call may have been filtered out, and
# an indirect jump may go to the next instruction, which some recorders take for no branch.
SUSPICIOUS = (*CALLS, Kind.INDIRECT_JUMP)
INDIRECT = (Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL)


class Verdict(IntEnum):
    """What a fall-through was found to be; the names are `waterfall.REASONS`."""

    VALID = 0
    BACKWARDS = 1
    NOT_AN_INSTRUCTION = 2
    CROSSES_GAP = 3
    CROSSES_JUMP = 4
    CROSSES_CALL = 5


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How strictly fall-throughs are judged."""

    strict: bool = False
    """Reject SUSPICIOUS fall-throughs."""
    compat: Compat = OURS
    """By whose rules (LLVM: tools/llvm-profgen/ProfiledBinary.cpp, UncondBranchAddrSet)."""


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """Fall-throughs with their place in the instruction table and their verdict.

    Columns of equal length n; first and last are instruction numbers, -1 where the verdict is
    NOT_AN_INSTRUCTION.
    """

    runs: Runs
    first: I64
    last: I64
    verdict: U8
    is_suspicious: Bools
    """Something of kind SUSPICIOUS lies inside."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, rows=len(self.runs))

    @property
    def valid(self) -> Bools:
        """(n,): whether each is valid."""
        valid: Bools = self.verdict == Verdict.VALID
        return valid


def judge(
    runs: Runs, instructions: InstructionTable, options: ReplayOptions | None = None
) -> JudgedRuns:
    """Judge each fall-through by the code it claims to have run over, see `Judge`."""
    return Judge(instructions, options).of(runs)


class Judge:
    """Judges fall-throughs by the code that they claim to have run over."""

    def __init__(self, instructions: InstructionTable, options: ReplayOptions | None) -> None:
        self._code, self._options = instructions, options or ReplayOptions()
        self._ends, self._unlogged = map(np.flatnonzero, line_ends(instructions, self._options))

    def of(self, runs: Runs) -> JudgedRuns:
        """The verdict on each.

        It is valid if it starts and ends on instructions, is not broken by a gap, and no
        instruction before its last one ends the fall-through.
        """
        options, stretch = self._options, self._code.run
        first, last = self._code.index_of(runs.start), self._code.index_of(runs.end)
        known = (first >= 0) & (last >= 0)
        ordered = known & (first <= last)
        crosses_jump = ordered & (_between(self._ends, first, last, ordered) > 0)
        crosses_call = ordered & (_between(self._unlogged, first, last, ordered) > 0)
        same_stretch = np.zeros(len(runs), dtype=np.bool_)
        same_stretch[ordered] = stretch[first[ordered]] == stretch[last[ordered]]
        verdict = np.zeros(len(runs), dtype=np.uint8)
        # From the least to the most telling reason: the last assignment wins.
        if options.strict or options.compat.follows(CALLS_END_RUNS):
            verdict[crosses_call] = Verdict.CROSSES_CALL
        verdict[crosses_jump] = Verdict.CROSSES_JUMP
        if not options.compat.follows(TRAPS_DONT_END_RUNS):
            verdict[ordered & ~same_stretch] = Verdict.CROSSES_GAP
        verdict[~known] = Verdict.NOT_AN_INSTRUCTION
        verdict[runs.start > runs.end] = Verdict.BACKWARDS
        suspicious = (verdict == Verdict.VALID) & crosses_call
        return JudgedRuns(runs, first, last, verdict, suspicious)


def line_ends(instructions: InstructionTable, options: ReplayOptions) -> tuple[Bools, Bools]:
    """Which instructions end a fall-through, and which others should have been logged."""
    kind = instructions.kind
    ends: Bools = instructions.ends_line & (kind != Kind.INDIRECT_JUMP)
    unlogged = np.isin(kind, SUSPICIOUS)
    if options.compat.follows(TRAPS_DONT_END_RUNS):
        ends, unlogged = np.isin(kind, (Kind.JUMP, Kind.RET)), np.isin(kind, CALLS)
    if not options.compat.follows(JUMPS_TO_NEXT_END_RUNS):
        # Some recorders take it for no branch.
        ends = ends & ~(instructions.has_target & (instructions.target == instructions.end))
    return ends, unlogged


def _between(marked: I64, first: I64, last: I64, rows: Bools) -> I64:
    """How many marked instructions lie in [first, last) of each row; 0 for other rows."""
    found = np.zeros(len(first), dtype=np.int64)
    found[rows] = np.searchsorted(marked, last[rows]) - np.searchsorted(marked, first[rows])
    return found


@dataclass(frozen=True)
class Flow:
    """Counts laid over the decoded instructions of every function with samples.

    Arrays of length m go with `instructions`, those of length b with `branches`. Counts of
    instructions are added up when they are asked for: a large program has many millions.
    """

    counts: BranchCounts
    instructions: InstructionTable
    judged: JudgedRuns
    branches: Branches
    branch_from: I64
    """(b,): instruction number of each branch, -1 outside the image or inside an instruction."""
    branch_to: I64
    """(b,): instruction number of each target, -1 likewise."""
    astray: Branches
    """Those that no branch can have made (see `replay.astray`), which `counts` has no more."""
    tallies: Mapping[str, int]

    def __repr__(self) -> str:
        ran, branches = int((self.executed > 0).sum()), len(self.branches)
        return f"<Flow: {ran:,} instructions that ran, {branches:,} branches>"

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "branch_from", "branch_to", rows=len(self.branches))

    def with_branches(self, parts: Branches, row: I64) -> Flow:
        """The same flow with each branch in parts; (b,): which branch each is a part of.

        What was added up of instructions is that of the parts, too.
        """
        places = self.branch_from[row], self.branch_to[row]
        found = replace(self, branches=parts, branch_from=places[0], branch_to=places[1])
        known = {name: value for name, value in vars(self).items() if name in _SUMS}
        vars(found).update(known)
        return found

    @property
    def branch_kind(self) -> U8:
        """(b,): `Kind` of the instruction that each branch starts at, `OTHER` where that is -1."""
        return np.append(self.instructions.kind, np.uint8(Kind.OTHER))[self.branch_from]

    @cached_property
    def executed(self) -> U64:
        """(m,): how many valid fall-throughs cover each instruction."""
        valid = self.judged.valid
        count = self.judged.runs.count[valid]
        total = self._sums(self.judged.first[valid], count)
        # A run covers everything from where it starts until, and with, where it ends.
        total[1:] -= self._sums(self.judged.last[valid], count)[:-1]
        np.cumsum(total, out=total)
        return _read_only(total)

    @cached_property
    def ended(self) -> U64:
        """(m,): how many valid fall-throughs end at each instruction."""
        valid = self.judged.valid
        return _read_only(self._sums(self.judged.last[valid], self.judged.runs.count[valid]))

    @cached_property
    def jumped(self) -> U64:
        """(m,): how many of these were ended by a branch that the instruction can have made."""
        if not len(self.astray):
            return self.ended
        astray = ended_astray(self.astray, self.instructions, self.taken, self.ended)
        return _read_only(self.ended - astray)

    @cached_property
    def taken(self) -> U64:
        """(m,): how often each instruction branched."""
        inside = self.branch_from >= 0
        return _read_only(self._sums(self.branch_from[inside], self.branches.count[inside]))

    @cached_property
    def mispredicted(self) -> U64:
        """(m,): how often it did so mispredicted."""
        inside = self.branch_from >= 0
        return _read_only(self._sums(self.branch_from[inside], self.branches.mispredicted[inside]))

    def _sums(self, index: I64, count: U64) -> U64:
        total = np.zeros(len(self.instructions), dtype=np.uint64)
        np.add.at(total, index, count)
        return total

    @property
    def not_taken(self) -> U64:
        """(m,): fall-throughs that run past each conditional branch; 0 for other instructions."""
        past = self.executed - self.ended
        return np.where(self.instructions.kind == Kind.COND, past, np.uint64(0))

    def indirect_targets(self) -> dict[int, list[int]]:
        """Recorded targets inside the image of every indirect branch, by its address."""
        is_indirect = np.isin(self.instructions.kind, INDIRECT)
        rows = (self.branch_from >= 0) & (self.branches.known & TO != 0)
        rows[rows] &= is_indirect[self.branch_from[rows]]
        targets: dict[int, list[int]] = {}
        for source, target in zip(
            self.branches.from_[rows].tolist(), self.branches.to[rows].tolist(), strict=True
        ):
            targets.setdefault(source, []).append(target)
        return targets


_SUMS = ("executed", "ended", "jumped", "taken", "mispredicted")
"""What flows add up when it is asked for."""


def replay(counts: BranchCounts, program: Program, options: ReplayOptions | None = None) -> Flow:
    """Lay counts over a program's code; every fall-through gets a verdict, and is tallied.

    `Flow.counts` are the given ones, with fused branches in their places (not by `FUSED_STAY`) and
    without those that lead astray (not by `ASTRAY_COUNT`).
    """
    options = options or ReplayOptions()
    instructions = program.instructions_for(_touched(counts))
    fused = 0
    if not options.compat.follows(FUSED_STAY):
        counts, fused = unfused(counts, instructions)
    is_believed = options.compat.follows(ASTRAY_COUNT)
    known = InstructionTable.empty() if is_believed else instructions
    counts, astray = without_astray(counts, known)
    branches = counts.branches()
    judged = judge(counts.runs(), instructions, options)
    return Flow(
        counts=counts,
        instructions=instructions,
        judged=judged,
        branches=branches,
        branch_from=_places(instructions, branches.from_, branches.known & FROM != 0),
        branch_to=_places(instructions, branches.to, branches.known & TO != 0),
        astray=astray,
        tallies={
            **_tally(counts, judged, program),
            **_patched(judged, instructions, program),
            FUSED: fused,
        },
    )


def _patched(
    judged: JudgedRuns, instructions: InstructionTable, program: Program
) -> dict[str, int]:
    """How many fall-throughs run over what a kernel patches; nothing where it patches nothing."""
    rows = instructions.index_of(program.patches.address)
    patched = distinct(rows[rows >= 0])
    if not len(patched):
        return {}
    valid = judged.valid
    over = _between(patched, judged.first, judged.last, valid) > 0
    return {"runs_patched": int(judged.runs.count[valid & over].sum())}


def _touched(counts: BranchCounts) -> PlacedAddresses:
    """Every placed address that the counts name, once."""
    columns = ((counts.from_, FROM), (counts.to, TO), (counts.end, END))
    return distinct(np.concatenate([column[counts.has(bit)] for column, bit in columns]))


def _places(instructions: InstructionTable, addresses: PlacedAddresses, known: Bools) -> I64:
    return np.where(known, instructions.index_of(addresses), -1)


def _read_only(column: U64) -> U64:
    column.flags.writeable = False
    return column


def _tally(counts: BranchCounts, judged: JudgedRuns, program: Program) -> dict[str, int]:
    count, valid = judged.runs.count, judged.valid

    def total(rows: npt.NDArray[np.bool_]) -> int:
        return int(count[rows].sum())

    region = program.regions.containing(judged.runs.start)
    in_stub = valid & np.append(program.regions.is_stub, False)[region]
    in_function = valid & (program.functions.containing(judged.runs.start) >= 0)
    unnamed = "no_function" if program.symbols.are_complete else "no_symbols"
    losses = {
        f"runs_valid/{verdict.name.lower()}": total(judged.verdict == verdict)
        for verdict in Verdict
        if verdict is not Verdict.VALID
    }
    return waterfall.merge(
        counts.tallies,
        {
            "runs_in_image": int(count.sum()),
            **losses,
            "runs_valid": total(valid),
            "runs_suspicious": total(judged.is_suspicious),
            "runs_in_function/linkage_table": total(in_stub),
            f"runs_in_function/{unnamed}": total(valid & ~in_function & ~in_stub),
            "runs_in_function": total(in_function),
        },
    )
