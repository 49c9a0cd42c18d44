"""Which taken branches the processor predicted wrongly, by branch and by source line.

A branch stack holds taken branches only: a branch that was mispredicted and not taken is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.model.branch_counts import FROM, Branches
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import F64, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import sums_at
from lbr2pgo.support.tables import Tabular, table, taken

NAME = "mispredictions"
TITLE = "Mispredictions"


_COUNTS = (
    Column("predicted", "predicted", Unit.COUNT, of_processor=True),
    Column("mispredicted", "mispredicted", Unit.COUNT, FIGURE, of_processor=True),
    Column("prediction_unknown", "not known", Unit.COUNT, SPARE),
    Column("rate", "rate", Unit.SHARE, FIGURE, of_processor=True),
    Column("rate_low", "at least", Unit.SHARE, of_processor=True),
    Column("rate_high", "at most", Unit.SHARE, of_processor=True),
    Column("per_thousand", "per 1,000 branches", Unit.RATE, of_processor=True),
)
_ONLY_TAKEN = (
    "Only taken branches are recorded: mispredictions of branches that fell through are not seen."
)


@table
class Predictions(Tabular):
    """Branches that were taken, ordered by address; columns of equal length."""

    address: PlacedAddresses
    known: U64
    """How often it is known how each was predicted."""
    mispredicted: U64
    low: F64
    high: F64


def predictions(evidence: Evidence) -> Predictions:
    """How the branches of the function that was asked for were predicted, with intervals."""
    observed = evidence.whole.once(_Observed)
    rows = evidence.rows_of(observed.address)
    seen = observed.seen.take(rows)
    low, high = seen.interval()
    return Predictions(observed.address[rows], seen.known, seen.missed, low, high)


def mispredictions(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of the whole recording, by branch, and by source line; most mispredicted first.

    The rate is that of the branch itself; per thousand branches counts its mispredictions among
    all branches of the recording. Both are of those entries only that say how they were predicted.
    """
    if not evidence.says_predictions:
        why = " ".join(evidence.limits.no_predictions) or (
            "The recording does not say which branches were mispredicted: record on a processor "
            "and with a filter that keep flags (not -j no_flags)."
        )
        return (empty(NAME, TITLE, _COUNTS, *evidence.branch_notes(), why),)
    observed = evidence.once(_Observed)
    notes = (
        *evidence.branch_notes(), *evidence.duplicate_notes(), *evidence.line_notes(),
        *observed.silent_notes(), _ONLY_TAKEN, *evidence.sample_notes(),
    )  # fmt: skip
    return (
        observed.whole(),
        observed.by_branch(top, notes),
        observed.by_line(top, notes),
    )


@dataclass(frozen=True, slots=True)
class _Predictions:
    """How often each of n branches, or groups of them, was taken."""

    known: U64
    """So that it is known how it was predicted."""
    missed: U64
    unknown: U64
    effective: F64
    """How many independent observations `known` is worth."""

    def take(self, rows: I64) -> _Predictions:
        return taken(self, rows)

    def grouped(self, group: I64, size: int) -> _Predictions:
        """Sums by group, given that of each row."""
        return _Predictions(
            sums_at(group, self.known, size),
            sums_at(group, self.missed, size),
            sums_at(group, self.unknown, size),
            np.bincount(group, self.effective, size).astype(np.float64),
        )

    @property
    def rate(self) -> F64:
        """Of each, 0 where nothing is known."""
        rate: F64 = self.missed / np.maximum(self.known, 1)
        return rate

    def interval(self) -> tuple[F64, F64]:
        """Bounds of the rate."""
        return wilson(self.rate, self.effective)

    def most(self) -> I64:
        """Rows by mispredictions, then by count, then as they come."""
        count = (self.known + self.unknown).astype(np.int64)
        return np.lexsort((-count, -self.missed.astype(np.int64)))


class _Observed:
    """Branch instructions with how often they were taken, by how they were predicted."""

    def __init__(self, evidence: Evidence) -> None:
        branches = evidence.recorded
        chosen = evidence.about(branches) & (branches.known & FROM != 0)
        known = _known(branches)
        each = _Predictions(
            known,
            branches.mispredicted,
            branches.prediction_unknown,
            known * _parts(evidence, branches.from_),
        )
        self.address, place = np.unique(branches.from_[chosen], return_inverse=True)
        self.seen = each.take(np.flatnonzero(chosen)).grouped(place, len(self.address))
        self.total = int(known.sum())
        self.evidence = evidence

    def silent_notes(self) -> tuple[str, ...]:
        silent = int(self.seen.unknown.sum())
        if not silent:
            return ()
        return (f"{silent:,} entries don't say how they were predicted; they are in no rate.",)

    def whole(self) -> Table:
        rows = np.zeros(len(self.address), np.int64)
        columns = _columns(self.seen.grouped(rows, 1 if self.total else 0), self.total)
        return build(f"{NAME}-summary", "Mispredictions altogether", columns)

    def by_branch(self, top: int | None, notes: tuple[str, ...]) -> Table:
        rows = self.seen.most()[:top]
        columns = _columns(self.seen.take(rows), self.total)
        places = self.evidence.names.of(self.address[rows]).columns()
        found = len(self.address)
        return build(NAME, TITLE, [*columns, *places], notes=notes, found=found)

    def by_line(self, top: int | None, notes: tuple[str, ...]) -> Table:
        lines = SourceLines.of(self.evidence.names, self.address)
        seen = self.seen.grouped(lines.group, len(lines))
        order = seen.most()
        rows = order[lines.known[order]][:top]
        columns = _columns(seen.take(rows), self.total)
        where = (Column("line", "source line", Unit.LOCATION, FIGURE), [*lines.texts(rows)])
        title = "Mispredictions by source line"
        found = int(lines.known.sum())
        notes += lines.notes(seen.missed, "mispredictions")
        return build(f"{NAME}-by-line", title, [*columns, where], notes=notes, found=found)


def _parts(evidence: Evidence, addresses: PlacedAddresses) -> F64:
    """How much each observation of these branches tells."""
    if evidence.spread is None:
        return np.ones(len(addresses))
    return np.append(evidence.spread.miss, 1.0)[evidence.flow.instructions.index_of(addresses)]


def _known(branches: Branches) -> U64:
    """(b,): how often it is known how each was predicted; damaged counts may say less than 0."""
    known = branches.count - np.minimum(branches.prediction_unknown, branches.count)
    return np.maximum(known, branches.mispredicted)


def _columns(seen: _Predictions, total: int) -> list[tuple[Column, list[Value]]]:
    shares = [[*_where(column, seen.known > 0)] for column in (seen.rate, *seen.interval())]
    counts = [column.tolist() for column in (seen.known - seen.missed, seen.missed, seen.unknown)]
    per_thousand = (1000 * seen.missed / max(total, 1)).tolist()
    return list(zip(_COUNTS, [*counts, *shares, per_thousand], strict=True))


def _where(column: F64, known: Bools) -> Iterator[float | None]:
    return (x if is_known else None for x, is_known in zip(column.tolist(), known, strict=True))
