"""Which functions the program spent itself in: by instructions, by branches, by cycles.

A function is a symbol's code with the fragments that compilers split off it. What it calls is not
in its figures, what was inlined into it is.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.latency import valid_cycles
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Priority, Table, Unit, Value, build
from lbr2pgo.model.branch_counts import FROM
from lbr2pgo.model.branch_stacks import MISSING, SATURATED
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.sums import sums_at
from lbr2pgo.support.tables import table

NAME = "hot-functions"
TITLE = "Hot functions"

_FALLS = (
    "Instructions are those of the fall-throughs between the branches of each sample's stack, so "
    "that long blocks weigh as much as they do in what the processor retired."
)
_NO_CYCLES = "The recording holds no cycles: the functions' shares in time are not known."


@table
class FunctionTotals:
    """Sums by region of the program (n,); those of fragments are in their functions'."""

    instructions: U64
    branches: U64
    """Taken branches that start there, as `perf report` counts them."""
    mispredicted: U64
    cycles: U64


def function_totals(evidence: Evidence) -> FunctionTotals:
    """What each region of the program adds up to."""
    return evidence.whole.once(_totals)


def _totals(evidence: Evidence) -> FunctionTotals:
    flow, branches = evidence.flow, evidence.recorded
    inside = np.flatnonzero(branches.known & FROM != 0)
    source = branches.from_[inside]
    cycles = valid_cycles(evidence)
    is_measured = (cycles.cycles != MISSING) & (cycles.cycles != SATURATED)
    time = np.where(is_measured, cycles.cycles, np.uint64(0)) * cycles.count
    return FunctionTotals(
        _by_region(evidence, flow.instructions.address, flow.executed),
        _by_region(evidence, source, branches.count[inside]),
        _by_region(evidence, source, branches.mispredicted[inside]),
        _by_region(evidence, cycles.start, time),
    )


def _by_region(evidence: Evidence, addresses: PlacedAddresses, values: U64) -> U64:
    """Sums of values (n,) over the functions of their addresses; what lies in none is left out."""
    regions = evidence.program.regions
    region = regions.containing(addresses)
    inside = region >= 0
    return sums_at(regions.parent[region[inside]], values[inside], len(regions))


def hot_functions(evidence: Evidence, top: int | None = TOP) -> Table:
    """Functions by instructions, and by branches where what ran between them is not known."""
    totals = function_totals(evidence)
    rows = _hottest(evidence, totals)
    chosen = rows[:top]
    missed = _missed(evidence, totals, chosen)
    places = evidence.names.of(evidence.program.regions.start[chosen])
    columns: list[tuple[Column, list[Value]]] = [
        _share("instructions_share", "instructions", totals.instructions, chosen, FIGURE),
        _share("branches_share", "branches", totals.branches, chosen, FIGURE),
        _share("cycles_share", "cycles", totals.cycles, chosen, of_processor=True),
        *missed,
        (Column("branches", "taken branches", Unit.COUNT), totals.branches[chosen].tolist()),
        *((column, list(values)) for column, values in places.columns()),
    ]
    notes = (*evidence.branch_notes(), *evidence.run_notes(), *evidence.line_notes())
    if totals.instructions.any():
        notes += (_FALLS,)
    if not totals.cycles.any() and len(rows):
        notes += (_NO_CYCLES,)
    return build(NAME, TITLE, columns, notes=notes, found=len(rows))


def _hottest(evidence: Evidence, totals: FunctionTotals) -> I64:
    """Functions that were seen, hottest first."""
    heat = totals.instructions if totals.instructions.any() else totals.branches
    seen = np.flatnonzero((totals.instructions > 0) | (totals.branches > 0))
    if evidence.function is not None:
        seen = seen[seen == evidence.program.regions.parent[evidence.function]]
    order = np.lexsort((-totals.branches[seen].view("i8"), -heat[seen].view("i8")))
    found: I64 = seen[order]
    return found


def _share(
    name: str,
    title: str,
    values: U64,
    chosen: I64,
    priority: Priority = Priority.DETAIL,
    *,
    of_processor: bool = False,
) -> tuple[Column, list[Value]]:
    """Each function's part of all; None where nothing was counted."""
    column = Column(name, title, Unit.SHARE, priority, of_processor)
    total = float(values.sum())
    shares: F64 = values[chosen] / max(total, 1.0)
    return column, shares.tolist() if total else [None] * len(chosen)


def _missed(
    evidence: Evidence, totals: FunctionTotals, chosen: I64
) -> list[tuple[Column, list[Value]]]:
    """Mispredicted branches and their part of all of them."""
    column = Column("mispredicted", "mispredicted", Unit.COUNT, SPARE, of_processor=True)
    share = _share(
        "mispredicted_share", "mispredictions", totals.mispredicted, chosen, of_processor=True
    )
    known = evidence.says_predictions
    return [
        share,
        (column, totals.mispredicted[chosen].tolist() if known else [None] * len(chosen)),
    ]
