"""How close a sampled profile comes to the exact counts of the same run.

Both are laid over the same edges and blocks, and normalised, because a sample stands for an
unknown number of events. Their *overlap* is the sum of the smaller weights: 1 if the
distributions are equal, 0 if they share nothing.

An edge is a taken branch or a conditional branch that fell through (its target is then the next
instruction). A block starts wherever an edge arrives and behind every branch that is not a call;
its weight is how often its first instruction ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.model.branch_counts import FROM, TO, sum_by
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import Counts, overlap, sums_at
from lbr2pgo.support.tables import Tabular, table

if TYPE_CHECKING:
    from lbr2pgo.program.code.regions import Functions
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replay import Flow

WORST = 10
"""How many of the worst functions are listed."""


@table
class EdgeCounts(Tabular):
    """Control transfers of one image; columns of equal length n, each pair once.

    `known` holds FROM and TO of `counts`: without one of them that end lies outside the image and
    its address is 0.
    """

    source: PlacedAddresses
    target: PlacedAddresses
    known: U8
    count: U64

    @property
    def inside(self) -> Bools:
        """(n,): whether both ends lie in the image."""
        both: Bools = self.known & (FROM | TO) == FROM | TO
        return both


@dataclass(frozen=True, slots=True)
class FunctionAccuracy:
    """How one function fares."""

    name: str
    share: float
    """Of all edges that were executed."""
    estimated_share: float
    """Of all edges that the profile counts."""
    overlap: float
    """Of its edges alone, each side normalised within the function."""
    error: float
    """What the function takes away from the edge overlap; over all functions it makes up what
    is missing to 1."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How an estimate compares with the truth over the same keys."""

    overlap: float
    coverage: float
    """Share of what was executed that lies on keys the profile saw at all."""
    executed: int
    """How many different keys were executed."""
    seen: int
    """How many of them the profile saw."""
    unreal: int
    """How many keys the profile holds that were never executed."""


_AGREEMENT = (
    Column("counted", "", Unit.TEXT, FIGURE),
    Column("overlap", "overlap", Unit.SHARE, FIGURE),
    Column("coverage", "coverage", Unit.SHARE),
    Column("executed", "executed", Unit.COUNT),
    Column("seen", "seen", Unit.COUNT),
    Column("unreal", "never executed", Unit.COUNT),
)
_FUNCTIONS = (
    Column("function", "function", Unit.FUNCTION, FIGURE),
    Column("share", "executed", Unit.SHARE),
    Column("estimated_share", "in profile", Unit.SHARE),
    Column("overlap", "overlap", Unit.SHARE),
    Column("error", "error", Unit.SHARE, FIGURE),
)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A profile judged by the exact counts."""

    edges: Agreement
    conditional: Agreement
    """Of edges whose source is a conditional branch, taken or not."""
    blocks: Agreement
    worst: tuple[FunctionAccuracy, ...]
    """Largest error first, no more than `WORST`, none without an error."""
    curves: Table | None = None
    """What other recorders would come to, where that is asked for."""
    notes: tuple[str, ...] = ()
    """What had to be assumed of the profile, and what is damaged in it."""

    @property
    def table(self) -> Table:
        """How each kind of thing that is counted agrees."""
        parts = (("edges", self.edges), ("conditional", self.conditional), ("blocks", self.blocks))
        rows = tuple(
            (name, each.overlap, each.coverage, each.executed, each.seen, each.unreal)
            for name, each in parts
        )
        return Table("accuracy", "Agreement with the exact counts", _AGREEMENT, rows)

    @property
    def functions(self) -> Table:
        """`worst` as a table."""
        rows = tuple(
            (each.name, each.share, each.estimated_share, each.overlap, each.error)
            for each in self.worst
        )
        title = "Functions that take most away from the edge overlap"
        return Table("accuracy-functions", title, _FUNCTIONS, rows)

    def __repr__(self) -> str:
        shares = (f"{each.overlap:.1%}" for each in (self.edges, self.conditional, self.blocks))
        return "<Accuracy: overlap of edges {}, conditional {}, blocks {}>".format(*shares)

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.functions._repr_html_()


def compare(truth: Counts, guess: Counts) -> Agreement:
    """Compare an estimate with the truth; columns of equal length, one row a key."""
    ran, seen = truth > 0, guess > 0
    total = int(truth.sum())
    return Agreement(
        overlap=overlap(truth, guess),
        coverage=int(truth[seen].sum()) / total if total else 1.0,
        executed=int(ran.sum()),
        seen=int((ran & seen).sum()),
        unreal=int((seen & ~ran).sum()),
    )


def sum_edges(
    source: PlacedAddresses, target: PlacedAddresses, known: U8, count: U64
) -> EdgeCounts:
    """Edges in any order, repeated or not, as `EdgeCounts`: sorted, added up, none empty."""
    rows = count > 0
    keys = (source[rows], target[rows], known[rows].astype(np.uint64))
    (*ends, inside), (total,) = sum_by(keys, (count[rows],))
    source, target = map(placed_addresses, ends)
    return EdgeCounts(source, target, inside.astype(np.uint8), total)


def exact_edges(
    source: PlacedAddresses,
    target: PlacedAddresses,
    source_inside: Bools,
    target_inside: Bools,
    count: U64,
) -> EdgeCounts:
    """The edges of one image out of exact counts of several; columns of equal length.

    Addresses are the image's where `…_inside` says so; edges that don't touch it are left out.
    """
    known = np.where(source_inside, FROM, 0) | np.where(target_inside, TO, 0)
    return sum_edges(
        np.where(source_inside, source, np.uint64(0)),
        np.where(target_inside, target, np.uint64(0)),
        known.astype(np.uint8),
        np.where(known > 0, count, np.uint64(0)),
    )


def estimated_edges(flow: Flow) -> EdgeCounts:
    """The edges that a replayed profile counts, fall-throughs of conditional branches included."""
    code, branches = flow.instructions, flow.branches
    fell = flow.not_taken > 0
    inside = np.full(int(fell.sum()), FROM | TO, dtype=np.uint8)
    return sum_edges(
        np.concatenate((branches.from_, code.address[fell])),
        np.concatenate((branches.to, code.address[fell] + code.size[fell])),
        np.concatenate((branches.known, inside)),
        np.concatenate((branches.count, flow.not_taken[fell])),
    )


def executions(edges: EdgeCounts, instructions: InstructionTable) -> U64:
    """(m,): how often each instruction ran, from exact edges.

    What arrives at an instruction runs straight on until an edge leaves. The sum starts anew
    behind instructions that end the fall-through, so the few transfers that are no branch (the
    program's start, its last system call, a signal) mislead no further than that.
    """
    size = len(instructions)
    if size == 0:
        return np.zeros(0, dtype=np.uint64)
    arrived = _sum_at(instructions, edges.target, edges.count, edges.known & TO != 0)
    left = _sum_at(instructions, edges.source, edges.count, edges.known & FROM != 0)
    running = np.cumsum(arrived) - np.cumsum(left) + left
    starts = _starts_line(instructions)
    before = np.where(starts, running - arrived, 0)[_latest(starts)]
    executed: U64 = np.maximum(running - before, 0).astype(np.uint64)
    return executed


def _sum_at(
    instructions: InstructionTable, address: PlacedAddresses, count: U64, rows: Bools
) -> I64:
    place = np.where(rows, instructions.index_of(address), -1)
    return sums_at(place, count.astype(np.int64), len(instructions))


def _starts_line(instructions: InstructionTable) -> Bools:
    """(m,): whether execution can't run straight into each instruction."""
    starts = np.ones(len(instructions), dtype=np.bool_)
    same_run = instructions.run[1:] == instructions.run[:-1]
    starts[1:] = instructions.ends_line[:-1] | ~same_run
    return starts


def _latest(starts: Bools) -> I64:
    """(m,): index of the last start at or before each place; the first place is one."""
    return np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))


def block_starts(instructions: InstructionTable, *edges: EdgeCounts) -> I64:
    """(k,): numbers of the instructions that begin a block, given all edges that are known."""
    starts = _starts_line(instructions)
    starts[1:] |= instructions.kind[:-1] == Kind.COND
    for each in edges:
        place = instructions.index_of(each.target[each.known & TO != 0])
        starts[place[place >= 0]] = True
    return np.flatnonzero(starts).astype(np.int64)


def measure(flow: Flow, exact: EdgeCounts, program: Program) -> Accuracy:
    """Judge a replayed profile by the exact edges of the same run."""
    estimate = estimated_edges(flow)
    instructions = program.instructions_for(_touched(exact, estimate))
    source, truth, guess = _align(exact, estimate)
    blocks = block_starts(instructions, exact, estimate)
    is_conditional = _are_conditional(instructions, source)
    return Accuracy(
        edges=compare(truth, guess),
        conditional=compare(truth[is_conditional], guess[is_conditional]),
        blocks=compare(
            executions(exact, instructions)[blocks],
            _executed_at(flow, instructions.address[blocks]),
        ),
        worst=_worst(program.regions, source, truth, guess),
    )


def _are_conditional(instructions: InstructionTable, addresses: PlacedAddresses) -> Bools:
    row = instructions.index_of(addresses)  # -1 finds the last one, which is none
    found: Bools = np.append(instructions.kind, Kind.OTHER)[row] == Kind.COND
    return found


def _touched(*edges: EdgeCounts) -> PlacedAddresses:
    """Every placed address that edges name, once."""
    columns = [each.source[each.known & FROM != 0] for each in edges]
    columns += [each.target[each.known & TO != 0] for each in edges]
    return np.unique(np.concatenate(columns))


def _executed_at(flow: Flow, addresses: PlacedAddresses) -> U64:
    """How often the profile says that each instruction ran; 0 where it knows none."""
    return np.append(flow.executed, np.uint64(0))[flow.instructions.index_of(addresses)]


def _align(exact: EdgeCounts, estimate: EdgeCounts) -> tuple[PlacedAddresses, U64, U64]:
    """Source, exact and estimated count of every edge inside the image that either has."""
    a, b = exact.inside, estimate.inside
    keys = np.concatenate(
        (
            np.stack((exact.source[a], exact.target[a]), axis=1),
            np.stack((estimate.source[b], estimate.target[b]), axis=1),
        )
    )
    unique, place = np.unique(keys, axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.zeros((2, len(unique)), dtype=np.uint64)
    counts[0, place[: a.sum()]] = exact.count[a]
    counts[1, place[a.sum() :]] = estimate.count[b]
    return unique[:, 0], counts[0], counts[1]


def _worst(
    functions: Functions, source: PlacedAddresses, truth: U64, guess: U64
) -> tuple[FunctionAccuracy, ...]:
    """The functions that take most away from the overlap."""
    owner = functions.containing(source)
    p = truth / max(int(truth.sum()), 1)
    q = guess / max(int(guess.sum()), 1)
    numbers, place = np.unique(owner, return_inverse=True)
    error = np.bincount(place, weights=np.abs(p - q), minlength=len(numbers)) / 2
    order = np.argsort(-error, kind="stable")[:WORST]
    found = []
    for i in order[error[order] > 0].tolist():
        rows = place == i
        found.append(
            FunctionAccuracy(
                name=_name(functions, int(numbers[i])),
                share=float(p[rows].sum()),
                estimated_share=float(q[rows].sum()),
                overlap=overlap(truth[rows], guess[rows]),
                error=float(error[i]),
            )
        )
    return tuple(found)


def _name(functions: Functions, number: int) -> str:
    if number < 0:
        return "(no function)"
    return functions.label(number) or f"{int(functions.start[number]):#x}"
