"""All analyses by name.

To add one: write its module, and name it here.
"""

from __future__ import annotations

from collections.abc import Callable

from lbr2pgo.analyses import (
    call_edges,
    call_stacks,
    hot_branches,
    hyperblocks,
    indirect_targets,
    latency,
    mispredictions,
    outcomes,
)
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.table import Table

Analysis = Callable[[Evidence, int | None], Table | tuple[Table, ...]]

ANALYSES: dict[str, Analysis] = {
    hot_branches.NAME: hot_branches.hot_branches,
    mispredictions.NAME: mispredictions.mispredictions,
    latency.NAME: latency.latency,
    outcomes.NAME: outcomes.outcomes,
    indirect_targets.NAME: indirect_targets.indirect_targets,
    hyperblocks.NAME: hyperblocks.hyperblocks,
    call_stacks.NAME: call_stacks.call_stacks,
    call_edges.NAME: call_edges.call_edges,
}
"""In the order in which a report shows them."""


_OF_PROCESSOR = (mispredictions.NAME, latency.NAME)
"""Analyses with no other matter than what a processor did with the code."""


def run(name: str, evidence: Evidence, top: int | None) -> tuple[Table, ...]:
    """The tables of one analysis."""
    found = ANALYSES[name](evidence, top)
    tables = (found,) if isinstance(found, Table) else found
    if not evidence.limits.is_simulated:
        return tables
    return tuple(table.as_simulated(in_title=name in _OF_PROCESSOR) for table in tables)
