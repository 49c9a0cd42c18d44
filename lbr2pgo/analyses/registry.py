"""All analyses by name.

To add one: write its module, and name it here, with what it has to ask the samples for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lbr2pgo.analyses import (
    call_edges,
    call_stacks,
    callers,
    data_accesses,
    fetch_misses,
    function_view,
    hot_branches,
    hot_functions,
    hyperblocks,
    indirect_targets,
    latency,
    mispredictions,
    outcomes,
    paths,
    phases,
    stack_ends,
    start,
)
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.table import Table
from lbr2pgo.evidence.call_stacks import CALL_STACKS
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.cycle_counts import CYCLES, ITERATIONS
from lbr2pgo.evidence.data_accesses import DATA_ACCESSES
from lbr2pgo.evidence.duplicates import DUPLICATES
from lbr2pgo.evidence.effective_samples import SPREAD
from lbr2pgo.evidence.fetch_misses import FETCH_MISS_FINDING
from lbr2pgo.evidence.single_branches import SINGLE_BRANCHES
from lbr2pgo.evidence.stack_ends import STACK_ENDS
from lbr2pgo.evidence.time_line import TIME_LINE
from lbr2pgo.support.dataclass import dataclass

Planned = Callable[[Evidence, int | None], Finding[Any] | None]
"""A finding that depends on which code ran, and on how many functions are to be looked at; None
where the samples can't tell."""
Needs = tuple[Finding[Any] | Planned, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """How its tables are made, and what they ask the samples for beside counts."""

    tables: Callable[[Evidence, int | None], Table | tuple[Table, ...]]
    needs: Needs = ()
    parts: tuple[str, ...] = ()
    """Its tables beside the one of its own name: `NAME-part`."""


def _hyperblocks(evidence: Evidence, top: int | None) -> tuple[Table, ...]:
    """Paths in functions, the code of the hottest one, and paths across calls."""
    inside = hyperblocks.hyperblocks(evidence, top)
    return *inside, paths.paths_across_calls(evidence, top)


ANALYSES = {
    hot_functions.NAME: Analysis(hot_functions.hot_functions, (DUPLICATES, CYCLES)),
    hot_branches.NAME: Analysis(hot_branches.hot_branches, (DUPLICATES,)),
    mispredictions.NAME: Analysis(
        mispredictions.mispredictions, (DUPLICATES, SPREAD), ("summary", "by-line")
    ),
    fetch_misses.NAME: Analysis(fetch_misses.fetch_misses, (FETCH_MISS_FINDING,), ("by-line",)),
    data_accesses.NAME: Analysis(
        data_accesses.data_accesses, (DATA_ACCESSES,), data_accesses.PARTS
    ),
    latency.NAME: Analysis(latency.latency, (CYCLES, ITERATIONS), ("by-line", "loops", "rates")),
    outcomes.NAME: Analysis(outcomes.outcomes, (SINGLE_BRANCHES, SPREAD), ("by-line", "to-invert")),
    indirect_targets.NAME: Analysis(indirect_targets.indirect_targets, parts=("by-site",)),
    hyperblocks.NAME: Analysis(
        _hyperblocks,
        (hyperblocks.paths_followed, paths.paths_followed),
        ("code", "across-calls"),
    ),
    call_stacks.NAME: Analysis(call_stacks.call_stacks, (CALL_STACKS,), ("tree", "folded")),
    callers.NAME: Analysis(callers.callers, (CALL_STACKS,)),
    call_edges.NAME: Analysis(call_edges.call_edges),
    phases.NAME: Analysis(phases.phases, (TIME_LINE,)),
    start.NAME: Analysis(start.start, (start.first_times,), start.PARTS),
    stack_ends.NAME: Analysis(stack_ends.stack_ends, (STACK_ENDS,)),
}
"""In the order in which a report shows them."""


_OF_PROCESSOR = (mispredictions.NAME, fetch_misses.NAME, latency.NAME)
"""Analyses with no other matter than what a processor did with the code."""


NAMES = (*ANALYSES, function_view.NAME)
"""Of all that a report can show: the tables of analyses, and views of functions."""

TABLES = {
    table: name
    for name, each in ANALYSES.items()
    for table in (name, *(f"{name}-{part}" for part in each.parts))
} | {function_view.NAME: function_view.NAME}
"""The analysis that makes each table, by the table's name."""


def findings(names: Iterable[str], known: Evidence, top: int | None) -> tuple[Finding[Any], ...]:
    """What analyses ask the samples for, each once; `known` is what counts tell."""
    needs = [need for name in names for need in _needs(name)]
    asked = (need if isinstance(need, Finding) else need(known, top) for need in needs)
    return tuple(dict.fromkeys(each for each in asked if each is not None))


def _needs(name: str) -> Needs:
    return function_view.NEEDS if name == function_view.NAME else ANALYSES[name].needs


def run(name: str, evidence: Evidence, top: int | None) -> tuple[Table, ...]:
    """The tables of one analysis."""
    found = ANALYSES[name].tables(evidence, top)
    tables = (found,) if isinstance(found, Table) else found
    if not evidence.limits.is_simulated:
        return tables
    return tuple(table.as_simulated(in_title=name in _OF_PROCESSOR) for table in tables)
