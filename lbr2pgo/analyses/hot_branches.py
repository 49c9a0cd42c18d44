"""Which taken branches were seen most often, from where to where.

The counts are those of `perf report --sort symbol_from,symbol_to,srcline_from,srcline_to`, by
address.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, build
from lbr2pgo.model.branch_counts import FROM, TO

NAME = "hot-branches"
TITLE = "Hot branches"


def hot_branches(evidence: Evidence, top: int | None = TOP) -> Table:
    """Taken branches by count; shares are of all taken branches in the image."""
    branches = evidence.recorded
    total = int(branches.count.sum())
    rows = np.flatnonzero(evidence.about(branches))
    order = np.lexsort((branches.to[rows], branches.from_[rows], -branches.count[rows].view("i8")))
    chosen = rows[order][:top]
    count = branches.count[chosen].tolist()
    known, file = branches.known[chosen], branches.file[chosen]
    source = evidence.names.of(branches.from_[chosen], known & FROM != 0, file)
    target = evidence.names.of(branches.to[chosen], known & TO != 0, file)
    return build(
        NAME,
        TITLE,
        [
            (Column("share", "share", Unit.SHARE, FIGURE), [n / total for n in count]),
            (Column("count", "count", Unit.COUNT, FIGURE), count),
            *source.columns("from_", "from "),
            *target.columns("to_", "to "),
        ],
        notes=(*evidence.branch_notes(), *evidence.duplicate_notes(), *evidence.line_notes()),
        found=len(rows),
    )
