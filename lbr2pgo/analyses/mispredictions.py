"""Which taken branches the processor predicted wrongly, by branch and by source line.

A branch stack holds taken branches only: a branch that was mispredicted and not taken is not seen.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.intervals import wilson
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import Column, Kind, Table, Value, build, empty
from lbr2pgo.model.branch_counts import FROM
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import F64, I64, U64

NAME = "mispredictions"
TITLE = "Mispredictions"


_COUNTS = (
    Column("predicted", "predicted", Kind.COUNT, of_processor=True),
    Column("mispredicted", "mispredicted", Kind.COUNT, of_processor=True),
    Column("rate", "rate", Kind.SHARE, of_processor=True),
    Column("rate_low", "at least", Kind.SHARE, of_processor=True),
    Column("rate_high", "at most", Kind.SHARE, of_processor=True),
    Column("per_thousand", "per 1,000 branches", Kind.RATE, of_processor=True),
)
_ONLY_TAKEN = (
    "Only taken branches are recorded: mispredictions of branches that fell through are not seen."
)


def mispredictions(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of the whole recording, by branch, and by source line; most mispredicted first.

    The rate is that of the branch itself; per thousand branches counts its mispredictions among
    all branches of the recording.
    """
    if not evidence.says_predictions:
        why = (
            "The recording does not say which branches were mispredicted: record on a processor "
            "and with a filter that keep flags (not -j no_flags)."
        )
        return (empty(NAME, TITLE, _COUNTS, *evidence.branch_notes(), why),)
    observed = _Observed(evidence)
    notes = (
        *evidence.branch_notes(), *evidence.duplicate_notes(), *evidence.line_notes(),
        *_silent_notes(evidence), _ONLY_TAKEN, *evidence.sample_notes(),
    )  # fmt: skip
    return (
        observed.whole(),
        observed.by_branch(top, notes),
        observed.by_line(top, notes),
    )


def _silent_notes(evidence: Evidence) -> tuple[str, ...]:
    silent = evidence.limits.entries - evidence.limits.with_prediction
    if silent <= 0:
        return ()
    return (f"{silent:,} entries don't say how they were predicted; they count as predicted.",)


class _Observed:
    """Branch instructions with how often they were taken and mispredicted."""

    def __init__(self, evidence: Evidence) -> None:
        branches = evidence.recorded
        chosen = evidence.about(branches) & (branches.known & FROM != 0)
        self.address, place = np.unique(branches.from_[chosen], return_inverse=True)
        self.count = _sum(place, branches.count[chosen], len(self.address))
        self.missed = _sum(place, branches.mispredicted[chosen], len(self.address))
        self.effective = self.count * _parts(evidence, self.address)
        self.total = int(branches.count.sum())
        self.evidence = evidence

    def whole(self) -> Table:
        rows = slice(0, 1 if self.total else 0)
        columns = _columns(
            self.count.sum(keepdims=True)[rows],
            self.missed.sum(keepdims=True)[rows],
            self.effective.sum(keepdims=True)[rows],
            self.total,
        )
        return build(f"{NAME}-summary", "Mispredictions altogether", columns)

    def by_branch(self, top: int | None, notes: tuple[str, ...]) -> Table:
        rows = _most(self.count, self.missed)[:top]
        columns = _columns(self.count[rows], self.missed[rows], self.effective[rows], self.total)
        places = self.evidence.names.of(self.address[rows]).columns()
        found = len(self.address)
        return build(NAME, TITLE, [*columns, *places], notes=notes, found=found)

    def by_line(self, top: int | None, notes: tuple[str, ...]) -> Table:
        lines = SourceLines.of(self.evidence.names, self.address)
        size = len(lines)
        count, missed = (_sum(lines.group, column, size) for column in (self.count, self.missed))
        effective = np.zeros(size)
        np.add.at(effective, lines.group, self.effective)
        order = _most(count, missed)
        rows = order[lines.known[order]][:top]
        columns = _columns(count[rows], missed[rows], effective[rows], self.total)
        where = (Column("line", "source line", Kind.LOCATION), [*lines.texts(rows)])
        title = "Mispredictions by source line"
        found = int(lines.known.sum())
        notes += lines.notes(missed, "mispredictions")
        return build(f"{NAME}-by-line", title, [*columns, where], notes=notes, found=found)


def _sum(place: I64, column: U64, size: int) -> U64:
    total = np.zeros(size, dtype=np.uint64)
    np.add.at(total, place.reshape(-1), column)
    return total


def _parts(evidence: Evidence, addresses: ImageAddresses) -> F64:
    """How much each observation of these branches tells."""
    parts = np.ones(len(addresses))
    if evidence.spread is not None:
        rows = evidence.flow.instructions.index_of(addresses)
        parts[rows >= 0] = evidence.spread.miss[rows[rows >= 0]]
    return parts


def _most(count: U64, missed: U64) -> I64:
    """Rows by mispredictions, then by count, then as they come."""
    return np.lexsort((-count.astype(np.int64), -missed.astype(np.int64)))


def _columns(
    count: U64, missed: U64, effective: F64, total: int
) -> list[tuple[Column, list[Value]]]:
    rate = missed / np.maximum(count, 1)
    low, high = wilson(rate, effective)
    values = (count - missed, missed, rate, low, high, 1000 * missed / max(total, 1))
    return [(column, each.tolist()) for column, each in zip(_COUNTS, values, strict=True)]
