"""All that is known of each branch of one function, and why it matters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.analyses.cases import case_values
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.gains import GainKind, saved_by_kind
from lbr2pgo.analyses.mispredictions import Predictions, predictions
from lbr2pgo.analyses.outcomes import Outcomes, estimate
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import PlacedAddress
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins

MOST_TARGETS = 50
"""Of each branch; what a hot interpreter's jump goes to, and a return's callers."""
_WORTH_TELLING = 0.001
"""Part of the whole recording from which on a branch matters."""

_REASONS = {
    GainKind.LAYOUT: "It jumps forward more often than not: turned round, it would save {saved:,} "
    "taken branches, {share:.1%} of all.",
    GainKind.COLD_CODE: "It jumps over code that never ran: with that moved away, {saved:,} taken "
    "branches less, {share:.1%} of all.",
    GainKind.PROMOTION: "A direct call of its hottest target would cover {saved:,} taken branches, "
    "{share:.1%} of all.",
}
_MISSED = "It has {share:.1%} of all mispredictions."


@dataclass(slots=True)
class BranchTarget:
    """Where a taken branch went; not frozen, as it is made by the thousand."""

    address: PlacedAddress | None
    """None in files that are not known."""
    function: str
    line: str | None
    case: str | None
    """The values of a switch that lead there."""
    count: int
    mispredicted: int


@dataclass(slots=True)
class BranchFacts:
    """One branch; what is not known is None. Not frozen either."""

    address: PlacedAddress
    taken: int | None
    """Of a conditional branch, as in `outcomes`; with what follows."""
    not_taken: int | None
    low: float | None
    high: float | None
    predicted: int | None
    """Of those taken, as far as they say how; as in `mispredictions`, with what follows."""
    mispredicted: int | None
    rate_low: float | None
    rate_high: float | None
    targets: tuple[BranchTarget, ...]
    """Most frequent first, `MOST_TARGETS` at most."""
    reasons: tuple[str, ...]
    """Why it matters; whole sentences."""


def branch_facts(evidence: Evidence) -> tuple[BranchFacts, ...]:
    """Branches of the function that was asked for, by address."""
    outcomes, predicted, targets = estimate(evidence), predictions(evidence), _targets(evidence)
    reasons = evidence.whole.once(_reasons)
    ran = dict(zip(outcomes.address.tolist(), range(len(outcomes)), strict=True))
    taken = dict(zip(predicted.address.tolist(), range(len(predicted)), strict=True))
    return tuple(
        BranchFacts(
            address,
            *_outcome(outcomes, ran.get(address)),
            *_prediction(predicted, taken.get(address)),
            targets.get(address, ()),
            reasons.get(address, ()),
        )
        for address in sorted(ran.keys() | taken.keys())
    )


def _outcome(
    found: Outcomes, row: int | None
) -> tuple[int | None, int | None, float | None, float | None]:
    if row is None:
        return None, None, None, None
    shares = float(found.low[row]), float(found.high[row])
    return int(found.taken[row]), int(found.not_taken[row]), *shares


def _prediction(
    found: Predictions, row: int | None
) -> tuple[int | None, int | None, float | None, float | None]:
    if row is None or not found.known[row]:
        return None, None, None, None
    shares = float(found.low[row]), float(found.high[row])
    missed = int(found.mispredicted[row])
    return int(found.known[row]) - missed, missed, *shares


def _targets(evidence: Evidence) -> dict[int, tuple[BranchTarget, ...]]:
    branches = evidence.flow.branches
    rows = evidence.rows_of(branches.from_)
    rows = rows[branches.known[rows] & FROM != 0]
    rows = rows[np.lexsort((-branches.count[rows].astype(np.int64), branches.from_[rows]))]
    rows = rows[_rank(branches.from_[rows].astype(np.int64)) < MOST_TARGETS]
    source, to = branches.from_[rows], branches.to[rows]
    places = evidence.names.of(to, branches.known[rows] & TO != 0, branches.file[rows])
    known = evidence.whole.once(_cases)
    cases = [known.get(pair) for pair in zip(source.tolist(), to.tolist(), strict=True)]
    found: dict[int, list[BranchTarget]] = {}
    for address, *target in zip(
        source.tolist(), places.address, places.function, places.line, cases,
        branches.count[rows].tolist(), branches.mispredicted[rows].tolist(), strict=True,
    ):  # fmt: skip
        found.setdefault(address, []).append(BranchTarget(*target))
    return {address: tuple(targets) for address, targets in found.items()}


def _cases(evidence: Evidence) -> dict[tuple[int, int], str]:
    """Of jumps through tables and their targets, the values of the switch that lead there."""
    flow = evidence.flow
    is_switch = np.append(flow.instructions.kind == Kind.INDIRECT_JUMP, False)
    rows = np.flatnonzero(is_switch[flow.branch_from])
    source, target = flow.branches.from_[rows], flow.branches.to[rows]
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    found = zip(pairs, case_values(evidence, source, target), strict=True)
    return {pair: words for pair, words in found if words is not None}


def _rank(ordered: I64) -> I64:
    """(n,): how many equal ones stand before each."""
    is_first = begins(ordered)
    first = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    rank: I64 = np.arange(len(ordered)) - first
    return rank


def _reasons(evidence: Evidence) -> dict[int, tuple[str, ...]]:
    """Of the branches of the whole program that matter."""
    found: dict[int, list[str]] = {}
    for address, words in (*_gained(evidence), *_missed(evidence)):
        found.setdefault(address, []).append(words)
    return {address: tuple(words) for address, words in found.items()}


def _gained(evidence: Evidence) -> Iterator[tuple[int, str]]:
    total = max(int(evidence.flow.branches.count.sum()), 1)
    for kind, (addresses, saved) in evidence.once(saved_by_kind).items():
        rows = np.flatnonzero(saved >= _WORTH_TELLING * total)
        for address, part in zip(addresses[rows].tolist(), saved[rows].tolist(), strict=True):
            yield address, _REASONS[kind].format(saved=part, share=part / total)


def _missed(evidence: Evidence) -> Iterator[tuple[int, str]]:
    found = predictions(evidence)
    total = max(int(found.mispredicted.sum()), 1)
    for row in np.flatnonzero(found.mispredicted >= 10 * _WORTH_TELLING * total).tolist():
        yield int(found.address[row]), _MISSED.format(share=int(found.mispredicted[row]) / total)
