"""How often each conditional branch was taken, and which had better be turned round.

Both outcomes are counted over the fall-throughs between neighbouring entries of a stack. The
oldest entry of a stack is left out: had that branch not been taken, the stack would not show it.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.cases import conditions
from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.places import file_column
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build
from lbr2pgo.evidence.single_branches import SINGLE_BRANCHES
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.tables import Tabular, table, taken

NAME = "outcomes"
TITLE = "Branch outcomes"

Columns = list[tuple[Column, list[Value]]]


@table
class Outcomes(Tabular):
    """Conditional branches that ran, ordered by address; columns of equal length."""

    address: PlacedAddresses
    target: PlacedAddresses
    taken: U64
    not_taken: U64
    probability: F64
    """Of being taken."""
    low: F64
    high: F64

    @property
    def count(self) -> U64:
        """How often each was seen."""
        count: U64 = self.taken + self.not_taken
        return count

    def columns(self, rows: I64) -> Columns:
        """Six columns of a table."""
        return [
            (Column("taken", "taken", Unit.COUNT, FIGURE), self.taken[rows].tolist()),
            (Column("not_taken", "not taken", Unit.COUNT, FIGURE), self.not_taken[rows].tolist()),
            (
                Column("probability", "taken share", Unit.SHARE, FIGURE),
                self.probability[rows].tolist(),
            ),
            (Column("probability_low", "at least", Unit.SHARE), self.low[rows].tolist()),
            (Column("probability_high", "at most", Unit.SHARE), self.high[rows].tolist()),
            (Column("target_address", "target", Unit.ADDRESS, SPARE), self.target[rows].tolist()),
        ]


def estimate(evidence: Evidence) -> Outcomes:
    """Outcome probabilities of every conditional branch that was seen, with their intervals."""
    found = evidence.whole.once(_estimate)
    if evidence.function is None:
        return found
    return taken(found, evidence.rows_of(found.address))


def _estimate(evidence: Evidence) -> Outcomes:
    code = _code(evidence)
    jumped, count, parts = _in_runs(evidence, code)
    alone_jumped, alone = _one_by_one(evidence, code)
    jumped, count = jumped + alone_jumped, count + alone
    rows = np.flatnonzero((code.kind == Kind.COND) & (count > 0))
    jumped, count = jumped[rows], count[rows]
    probability = jumped / count
    low, high = wilson(probability, count * parts[rows])
    return Outcomes(
        address=code.address[rows],
        target=code.target[rows],
        taken=jumped,
        not_taken=count - jumped,
        probability=probability,
        low=low,
        high=high,
    )


def _code(evidence: Evidence) -> InstructionTable:
    """The instructions of all functions that ran.

    Where no branch was taken the flow has no code, but branches may have been sampled one by one.
    """
    code, singles = evidence.flow.instructions, evidence.found(SINGLE_BRANCHES)
    if singles is None or (code.index_of(singles.address) >= 0).all():
        return code
    return evidence.program.instructions_for(np.concatenate((code.address, singles.address)))


def _in_runs(evidence: Evidence, code: InstructionTable) -> tuple[U64, U64, F64]:
    """Of each instruction: how often a run ended there by a jump, and how often one held it.

    Also which part of these observations as many independent ones would be.
    """
    flow = evidence.flow
    at = code.index_of(flow.instructions.address)
    taken, count = np.zeros(len(code), np.uint64), np.zeros(len(code), np.uint64)
    parts = np.ones(len(code))
    taken[at], count[at] = flow.jumped, flow.jumped + flow.executed - flow.ended
    if evidence.spread is not None:
        parts[at] = evidence.spread.outcome
    return taken, count, parts


def _one_by_one(evidence: Evidence, code: InstructionTable) -> tuple[U64, U64]:
    """Of each instruction: how often it was sampled alone and taken, and how often alone."""
    taken, alone = np.zeros(len(code), np.uint64), np.zeros(len(code), np.uint64)
    singles = evidence.found(SINGLE_BRANCHES)
    if singles is not None and len(singles):
        at = code.index_of(singles.address)
        known = at >= 0
        taken[at[known]] = singles.taken[known]
        alone[at[known]] = (singles.taken + singles.not_taken)[known]
    return taken, alone


def outcomes(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables by branch, by source line, and of branches worth inverting; hottest first."""
    found = estimate(evidence)
    notes = (
        *evidence.branch_notes(), *evidence.run_notes(), *evidence.line_notes(),
        *(evidence.sample_notes() if len(found) else ()),
    )  # fmt: skip
    return (
        _by_branch(evidence, found, top, notes),
        _by_line(evidence, found, top, notes),
        _worth_inverting(evidence, found, top, notes),
    )


def _by_branch(
    evidence: Evidence, found: Outcomes, top: int | None, notes: tuple[str, ...]
) -> Table:
    rows = np.argsort(-found.count.astype(np.int64), kind="stable")[:top]
    places = evidence.names.of(found.address[rows]).columns()
    columns = [*found.columns(rows), *places]
    return build(NAME, TITLE, columns, notes=notes, found=len(found))


def _by_line(evidence: Evidence, found: Outcomes, top: int | None, notes: tuple[str, ...]) -> Table:
    """The lines with the most outcomes; the branches of a line one below the other."""
    lines = SourceLines.of(evidence.names, found.address)
    size = len(lines)
    heat = np.bincount(lines.group, weights=found.count, minlength=size)
    known = lines.known
    hottest = np.argsort(np.where(known, -heat, 1), kind="stable")[: int(known.sum())][:top]
    members = [np.flatnonzero(lines.group == line) for line in hottest]
    rows = np.concatenate([np.empty(0, np.int64), *members])
    places = evidence.names.of(found.address[rows])
    columns: Columns = [
        (Column("line", "source line", Unit.LOCATION, FIGURE), list(places.line)),
        (
            Column("branch", "branch of the line", Unit.TEXT),
            [f"{i + 1} of {len(each)}" for each in members for i in range(len(each))],
        ),
        (Column("column", "column", Unit.TEXT, SPARE), list(places.column)),
        (
            Column("condition", "taken if", Unit.TEXT, FIGURE),
            [*conditions(evidence, found.address[rows])],
        ),
        *found.columns(rows),
        (Column("function", "function", Unit.FUNCTION), list(places.function)),
        *((column, list(files)) for column, files in file_column(places.file)),
        (Column("address", "address", Unit.ADDRESS), list(places.address)),
    ]
    lines_known = np.isin(lines.group, np.flatnonzero(known))
    total = int(lines_known.sum())
    title = "Branch outcomes by source line"
    notes += lines.notes(heat, "outcomes")
    return build(f"{NAME}-by-line", title, columns, notes=notes, found=total)


def _worth_inverting(
    evidence: Evidence, found: Outcomes, top: int | None, notes: tuple[str, ...]
) -> Table:
    """Forward branches that are surely taken more often than not."""
    wrong_way = (found.target > found.address) & (found.low > 0.5)
    saved = found.taken.astype(np.int64) - found.not_taken.astype(np.int64)
    rows = np.flatnonzero(wrong_way)
    chosen = rows[np.argsort(-saved[rows], kind="stable")][:top]
    columns: Columns = [
        (Column("saved", "taken branches saved", Unit.COUNT, FIGURE), saved[chosen].tolist()),
        *found.columns(chosen),
        *((column, list(v)) for column, v in evidence.names.of(found.address[chosen]).columns()),
    ]
    title = "Forward branches worth inverting"
    return build(f"{NAME}-to-invert", title, columns, notes=notes, found=len(rows))
