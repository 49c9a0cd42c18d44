"""What a compiler or a linker could win with this profile, in taken branches saved.

Three things that are told apart by counts alone, each measured in the same unit, so that they can
be compared. They overlap: a jump over cold code is often one that had better be turned round.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.analyses.table import Column, Table, Unit, Value, build
from lbr2pgo.model.branch_counts import TO
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.process import Process
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses, slot_of
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass

COLD_CODE = "layout-cold-code"


class GainKind(StrEnum):
    """What would be done."""

    LAYOUT = "layout"
    """Turn forward branches round that surely jump more often than not."""
    COLD_CODE = "cold code"
    """Move code away that jumps skip and that was never seen to run: inlined slow paths, say."""
    PROMOTION = "promotion"
    """Call the most frequent target of an indirect call directly."""


@dataclass(frozen=True, slots=True)
class Gain:
    """One of these, with the branch that would win the most."""

    kind: GainKind
    saved: int
    """Taken branches; of PROMOTION, indirect calls that a direct one would cover."""
    share: float
    """Of all taken branches."""
    largest: int
    """Image address of the branch that has most of it."""
    largest_share: float
    """Its part of what is saved."""


def gains(evidence: Evidence) -> list[Gain]:
    """Those that would save anything, the largest first.

    Of a process, gains are those of files that were asked for: nobody rebuilds the libraries that
    were found beside a program.
    """
    total = int(evidence.flow.branches.count.sum())
    parts = evidence.once(saved_by_kind).items()
    found = [_gain(kind, *columns, total) for kind, columns in parts if len(columns[0])]
    return sorted(found, key=lambda gain: -gain.saved)


def saved_by_kind(evidence: Evidence) -> dict[GainKind, tuple[PlacedAddresses, I64]]:
    """The branches that would win, and how much each."""
    parts = {
        GainKind.LAYOUT: _wrong_way(evidence),
        GainKind.COLD_CODE: _over_cold_code(evidence),
        GainKind.PROMOTION: _one_target(evidence),
    }
    found = {}
    for kind, (address, saved) in parts.items():
        rows = _is_rebuilt(evidence.program, address) & (saved > 0)
        found[kind] = address[rows], saved[rows]
    return found


def cold_code(evidence: Evidence, top: int | None = TOP) -> Table:
    """A table of the jumps over code that never ran, most taken first."""
    address, saved = evidence.once(saved_by_kind)[GainKind.COLD_CODE]
    rows = np.argsort(-saved, kind="stable")[:top]
    code = evidence.flow.instructions
    jump = code.index_of(address[rows])
    target = code.target[jump]
    skipped = (target - code.end_of(jump)).tolist()
    columns: list[tuple[Column, Sequence[Value]]] = [
        (Column("saved", "taken branches saved", Unit.COUNT), saved[rows].tolist()),
        (Column("bytes", "bytes that never ran", Unit.COUNT), skipped),
        *evidence.names.of(address[rows]).columns(),
        (Column("target_address", "target", Unit.ADDRESS), target.tolist()),
    ]
    return build(COLD_CODE, "Jumps over code that never ran", columns, found=len(saved))


def _is_rebuilt(program: Program, address: PlacedAddresses) -> Bools:
    """(n,): which addresses are of the program, or of a library that was asked for."""
    if not isinstance(program, Process):
        return np.ones(len(address), np.bool_)
    asked_for = [part.slot for part in program.parts if part.slot == 0 or part.is_named]
    slots = [slot_of(each) for each in address.tolist()]
    return np.isin(np.array(slots, np.int64), asked_for)


def _gain(kind: GainKind, address: PlacedAddresses, saved: I64, total: int) -> Gain:
    most, altogether = int(np.argmax(saved)), int(saved.sum())
    largest = int(address[most])
    return Gain(kind, altogether, altogether / total, largest, int(saved[most]) / altogether)


def _wrong_way(evidence: Evidence) -> tuple[PlacedAddresses, I64]:
    found = estimate(evidence)
    rows = (found.target > found.address) & (found.low > 0.5)
    saved = found.taken.astype(np.int64) - found.not_taken.astype(np.int64)
    return found.address[rows], saved[rows]


def _over_cold_code(evidence: Evidence) -> tuple[PlacedAddresses, I64]:
    """Direct jumps forward, within a function, over instructions none of which ever ran.

    None where what ran between branches is not known: all other code would pass for cold.
    """
    flow = evidence.flow
    if evidence.run_notes():
        return flow.branches.from_[:0], np.empty(0, np.int64)
    code, regions = flow.instructions, evidence.program.regions
    row = np.flatnonzero(
        np.isin(code.kind, (Kind.COND, Kind.JUMP)) & (flow.taken > 0) & code.has_target
    )
    target = code.index_of(code.target[row])
    same = regions.containing(code.address[row]) == regions.containing(code.target[row])
    chosen = (target > row + 1) & same
    row, target = row[chosen], target[chosen]
    ran = np.concatenate(([0], np.cumsum((flow.executed > 0) | (flow.taken > 0))))
    is_cold = ran[target] == ran[row + 1]
    return code.address[row[is_cold]], flow.taken[row[is_cold]].astype(np.int64)


def _one_target(evidence: Evidence) -> tuple[PlacedAddresses, I64]:
    """The hottest known target of each indirect call."""
    flow = evidence.flow
    is_call = np.append(flow.instructions.kind == Kind.INDIRECT_CALL, False)
    rows = np.flatnonzero(is_call[flow.branch_from] & (flow.branches.known & TO != 0))
    site, place = np.unique(flow.branches.from_[rows], return_inverse=True)
    most: U64 = np.zeros(len(site), np.uint64)
    np.maximum.at(most, place.reshape(-1), flow.branches.count[rows])
    return site, most.astype(np.int64)
