"""Who called whom how often, from branches: direct, indirect and tail calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.places import file_column
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.distinct import among
from lbr2pgo.support.sums import sums_of_pairs

NAME = "call-edges"
TITLE = "Call edges"

_JUMPS = (Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP)
_WARNING = (
    "Counts of call edges say how often a call was taken, and not how long it took: a function "
    "that is called rarely and runs long has a small count."
)


def call_edges(evidence: Evidence, top: int | None = TOP) -> Table:
    """Calls by caller and callee, most frequent first; shares are of all calls."""
    flow, branches = evidence.flow, evidence.flow.branches
    caller, callee = _families(evidence)
    is_call = _is_call(evidence, caller, callee)
    rows = np.flatnonzero(is_call & evidence.about(branches))
    caller, callee, count = sums_of_pairs(caller[rows], callee[rows], branches.count[rows])
    order = np.argsort(-count.astype(np.int64), kind="stable")[:top]
    total = int(flow.branches.count[is_call].sum())
    columns = [
        (Column("share", "share", Unit.SHARE, FIGURE), (count[order] / max(total, 1)).tolist()),
        (Column("count", "count", Unit.COUNT, FIGURE), count[order].tolist()),
        *_columns(evidence, "caller", caller[order]),
        *_columns(evidence, "callee", callee[order]),
    ]
    notes = (_WARNING, *evidence.branch_notes())
    return build(NAME, TITLE, columns, notes=notes, found=len(count))


def called_regions(evidence: Evidence) -> tuple[I64, I64, I64]:
    """Calls as (c,) caller, callee (see `_families`) and row of `Flow.branches`.

    A pair may come repeatedly.
    """
    caller, callee = _families(evidence)
    rows = np.flatnonzero(_is_call(evidence, caller, callee))
    return caller[rows], callee[rows], rows


def _families(evidence: Evidence) -> tuple[I64, I64]:
    """(b,) each: the function that each branch leaves and reaches.

    What is outside the image has -1 less the number of its file.
    """
    branches, regions = evidence.flow.branches, evidence.program.regions
    found = []
    for addresses, bit in ((branches.from_, FROM), (branches.to, TO)):
        region = regions.containing(addresses)
        is_known = branches.known & bit != 0
        own = np.where(region >= 0, regions.parent[region], -1) if len(regions) else region
        found.append(np.where(is_known, own, -1 - branches.file))
    return found[0], found[1]


def _is_call(evidence: Evidence, caller: I64, callee: I64) -> Bools:
    """(b,): calls, and jumps to the start of another function.

    What comes from outside is a call if it goes to the start of a function.
    """
    flow = evidence.flow
    kind = flow.branch_kind
    regions = evidence.program.regions
    starts = among(flow.branches.to, regions.start) & (flow.branches.known & TO != 0)
    jumps = np.isin(kind, _JUMPS) & (caller != callee) & starts
    enters = (flow.branches.known & FROM == 0) & starts
    found: Bools = np.isin(kind, CALLS) | jumps | enters
    return found


def _columns(evidence: Evidence, name: str, regions: I64) -> list[tuple[Column, Sequence[Value]]]:
    """Functions, and their files where there are several."""
    inside = regions >= 0
    starts = placed_addresses(np.append(evidence.program.regions.start, np.uint64(0)))
    places = evidence.names.of(starts[np.maximum(regions, -1)], inside, -1 - regions)
    return [
        (Column(name, name, Unit.FUNCTION), places.function),
        *file_column(places.file, f"{name}_", f"{name}'s "),
    ]
