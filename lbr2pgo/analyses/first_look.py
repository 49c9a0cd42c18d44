"""Which tables of a recording are worth the first look: those of what costs or could save most.

All are put on one scale, parts of all taken branches or of their cycles. What a simulated processor
did is worth nothing, for no real one may do the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lbr2pgo.analyses import (
    call_edges,
    call_stacks,
    hot_branches,
    hot_functions,
    hyperblocks,
    indirect_targets,
    latency,
    mispredictions,
    outcomes,
)
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.gains import GainKind, gains
from lbr2pgo.analyses.table import Table

MOST = 3
"""Tables beside that of hot functions."""
_MISSED = 15
"""Taken branches that cost as much as one misprediction does: 10 to 25 cycles (Intel Optimization
Reference Manual, §3.4.1), and a taken branch one or two."""
_GAINS = {
    GainKind.LAYOUT: f"{outcomes.NAME}-to-invert",
    GainKind.COLD_CODE: hyperblocks.NAME,
    GainKind.PROMOTION: indirect_targets.NAME,
}
"""The table that shows what each is about."""
_ELSE = (call_stacks.NAME, hot_branches.NAME, mispredictions.NAME, latency.NAME, call_edges.NAME)
"""What is looked at where nothing is to be gained."""


def first_look(evidence: Evidence, tables: Iterable[Table]) -> tuple[str, ...]:
    """Names of the tables to be seen first, of those that have rows; hot functions lead."""
    filled = {table.name: table for table in tables if len(table)}
    if not _missed(filled):
        filled.pop(mispredictions.NAME, None)  # a table of nothing
    worth = {_GAINS[gain.kind]: gain.share for gain in evidence.once(gains)}
    if not evidence.limits.is_simulated:
        worth[mispredictions.NAME] = _missed(filled)
        worth[latency.NAME] = _slow(filled)
    order = sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name])
    chosen = [name for name in dict.fromkeys((*order, *_ELSE, *filled)) if name in filled]
    return (hot_functions.NAME, *[n for n in chosen if n != hot_functions.NAME][:MOST])


def _missed(tables: Mapping[str, Table]) -> float:
    """What mispredictions cost, as a part of what all taken branches do."""
    whole = tables.get(f"{mispredictions.NAME}-summary")
    rates = whole.column("rate") if whole else ()
    return sum(_MISSED * rate for rate in rates if isinstance(rate, float))


def _slow(tables: Mapping[str, Table]) -> float:
    """The part of the blocks' cycles by which their means exceed their medians."""
    table = tables.get(latency.NAME)
    if table is None:
        return 0.0
    rows = [[float(row[key] or 0) for key in ("count", "trimmed_mean", "p50")]
            for row in table.records()]  # fmt: skip
    whole = sum(count * mean for count, mean, _ in rows)
    return sum(count * max(mean - median, 0) for count, mean, median in rows) / max(whole, 1)
