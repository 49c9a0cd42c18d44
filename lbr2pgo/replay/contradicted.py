"""Whether recordings that don't say what was recorded are of another program than the given one.

Addresses alone, or paths without build-ids, are believed. Where they lead into other code it shows
in the data: branches are where that has none, or lead where its direct ones don't.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import FROM
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.sums import exact_sum

_FEWEST = 1000
"""Taken branches; a few may be anything."""
_MOST = 0.5
"""Share of them from which on it is no damage: of a program's own, all but interrupts fit."""


def contradicted(flow: Flow) -> Doubt | None:
    """That most branches are none of the program, if so."""
    inside = flow.branches.known & FROM != 0
    kind = np.append(flow.instructions.kind, Kind.OTHER)[flow.branch_from]
    astray = exact_sum(flow.astray.count)
    other = exact_sum(flow.branches.count[inside & (kind == Kind.OTHER)]) + astray
    total = exact_sum(flow.branches.count[inside]) + astray
    if total < _FEWEST or other <= _MOST * total:
        return None
    return Doubt(
        f"another build was recorded, or another program: {other / total:.0%} of the branches are "
        "none of this one's"
    )
