"""Whether recordings that don't say what was recorded are of another program than the given one.

Addresses alone, or paths without build-ids, are believed. Where they lead into other code it shows
in the data: branches are where that has none, or lead where its direct ones don't.
"""

from __future__ import annotations

from lbr2pgo.model.branch_counts import FROM
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.sums import exact_sum

_FEWEST = 100
"""Taken branches; a few may be anything."""
_MOST = 0.5
"""Share of them from which on it is no damage: of a program's own, all but interrupts fit."""


def contradicted(flow: Flow) -> Doubt | None:
    """That most branches are none of the program, if so."""
    branches, share = _elsewhere(flow)
    if branches < _FEWEST or share <= _MOST:
        return None
    return Doubt(
        f"another build was recorded, or another program: {share:.0%} of the branches are none of "
        "this one's"
    )


def contradictions(flow: Flow) -> float:
    """Share of the fall-throughs that contradict the code, or of the branches if that is more."""
    count = flow.judged.runs.count
    total, valid = exact_sum(count), exact_sum(count[flow.judged.valid])
    return max(1 - valid / total if total else 0.0, _elsewhere(flow)[1])


def _elsewhere(flow: Flow) -> tuple[int, float]:
    """How many branches there are, and which share of them the program does not have."""
    inside = flow.branches.known & FROM != 0
    astray = exact_sum(flow.astray.count)
    other = exact_sum(flow.branches.count[inside & (flow.branch_kind == Kind.OTHER)]) + astray
    total = exact_sum(flow.branches.count[inside]) + astray
    return total, other / total if total else 0.0
