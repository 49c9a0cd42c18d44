"""Which code the simulated instruction cache lacked when it was to run, by function and by line."""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.evidence.fetch_misses import FETCH_MISS_FINDING, NO_FETCH_MISSES
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import sums_at

NAME = "fetch-misses"
TITLE = "Misses of the instruction cache"

_NONE = "The recording has no misses: lbr2pgo record --emulate --model PRESET simulates some."
_SHARE = Column("share", "share", Unit.SHARE, FIGURE, of_processor=True)
_COUNT = Column("samples", "samples", Unit.COUNT, FIGURE, of_processor=True)


def fetch_misses(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """By function and by line, most missed first."""
    found = evidence.found(FETCH_MISS_FINDING) or NO_FETCH_MISSES
    rows = evidence.rows_of(found.address)
    address, count = found.address[rows], found.count[rows]
    total = int(found.count.sum()) + found.elsewhere
    notes = _notes(found.elsewhere, total)
    return (
        _by_function(evidence, address, count, total, top, notes),
        _by_line(evidence, address, count, total, top, notes),
    )


def _notes(elsewhere: int, total: int) -> tuple[str, ...]:
    if not total:
        return (_NONE,)
    return (f"{elsewhere / total:.1%} were in other files.",) if elsewhere else ()


def _by_function(
    evidence: Evidence,
    address: PlacedAddresses,
    count: U64,
    total: int,
    top: int | None,
    notes: tuple[str, ...],
) -> Table:
    regions = evidence.program.regions
    region = regions.containing(address)
    sums = sums_at(regions.parent[region[region >= 0]], count[region >= 0], len(regions))
    order = _most(sums)
    rows = order[:top]
    places = evidence.names.of(regions.start[rows])
    columns = _columns(sums[rows], total)
    columns += ((column, list(values)) for column, values in places.columns())
    return build(NAME, TITLE, columns, notes=notes, found=len(order))


def _by_line(
    evidence: Evidence,
    address: PlacedAddresses,
    count: U64,
    total: int,
    top: int | None,
    notes: tuple[str, ...],
) -> Table:
    lines = SourceLines.of(evidence.names, address)
    sums = sums_at(lines.group, count, len(lines))
    order = _most(sums)
    known = order[lines.known[order]]
    rows = known[:top]
    where = (Column("line", "source line", Unit.LOCATION, FIGURE), [*lines.texts(rows)])
    notes += (*evidence.line_notes(), *lines.notes(sums, "samples"))
    title = f"{TITLE}, by source line"
    columns = _columns(sums[rows], total)
    return build(f"{NAME}-by-line", title, [*columns, where], notes=notes, found=len(known))


def _most(sums: U64) -> I64:
    """Rows that have some, the most first."""
    seen = np.flatnonzero(sums)
    return seen[np.argsort(-sums[seen].astype(np.int64), kind="stable")]


def _columns(count: U64, total: int) -> list[tuple[Column, list[Value]]]:
    return [(_SHARE, (count / max(total, 1)).tolist()), (_COUNT, count.tolist())]
