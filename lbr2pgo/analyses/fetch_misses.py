"""Which code the simulated instruction cache lacked when it was to run, by function and by line."""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.evidence.fetch_misses import FETCH_MISS_FINDING
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import sums_at

NAME = "fetch-misses"
TITLE = "Misses of the instruction cache"

_SHARE = Column("share", "share", Unit.SHARE, FIGURE, of_processor=True)
_COUNT = Column("samples", "samples", Unit.COUNT, FIGURE, of_processor=True)


def fetch_misses(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """By function and by line, most missed first; none of recordings that don't tell."""
    found = evidence.found(FETCH_MISS_FINDING)
    if found is None or not len(found.address) + found.elsewhere:
        return ()
    rows = evidence.rows_of(found.address)
    address, count = found.address[rows], found.count[rows]
    total = int(found.count.sum()) + found.elsewhere
    return (
        _by_function(evidence, address, count, total, top, _elsewhere(found.elsewhere, total)),
        _by_line(evidence, address, count, total, top),
    )


def _elsewhere(samples: int, total: int) -> tuple[str, ...]:
    return (f"{samples / total:.1%} were in other files.",) if samples else ()


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
    places = evidence.names.of(regions.start[rows]).columns()
    columns = [*_columns(sums[rows], total), *((column, [*values]) for column, values in places)]
    return build(NAME, TITLE, columns, notes=notes, found=len(order))


def _by_line(
    evidence: Evidence, address: PlacedAddresses, count: U64, total: int, top: int | None
) -> Table:
    lines = SourceLines.of(evidence.names, address)
    sums = sums_at(lines.group, count, len(lines))
    order = _most(sums)
    known = order[lines.known[order]]
    rows = known[:top]
    where = (Column("line", "source line", Unit.LOCATION, FIGURE), [*lines.texts(rows)])
    notes = (*evidence.line_notes(), *lines.notes(sums, "misses"))
    title = f"{TITLE}, by source line"
    columns = [*_columns(sums[rows], total), where]
    return build(f"{NAME}-by-line", title, columns, notes=notes, found=len(known))


def _most(sums: U64) -> I64:
    """Rows that have some, the most first."""
    seen = np.flatnonzero(sums)
    return seen[np.argsort(-sums[seen].astype(np.int64), kind="stable")]


def _columns(count: U64, total: int) -> list[tuple[Column, list[Value]]]:
    return [(_SHARE, (count / total).tolist()), (_COUNT, count.tolist())]
