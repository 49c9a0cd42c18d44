"""Outcomes of branches that were sampled one by one.

Arm SPE samples instructions: of a branch it tells whether it was taken, where it went and whether
that was predicted. Such entries are no stack, but unlike a stack's they also show branches that
were not taken (perf: util/arm-spe.c, arm_spe__prep_branch_stack).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.model.branch_stacks import (
    FIRST_EXCEPTION,
    NOT_TAKEN,
    SPEC_WRONG_PATH,
    spec_of,
    type_of,
)
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.tables import Tabular, end_to_end, table

_MOST_ENTRIES = 2
"""The branch, and with FEAT_SPE_PBT where the branch before it went to."""


@table
class SingleBranches(Tabular):
    """Columns of equal length, in placed addresses, ascending."""

    address: PlacedAddresses
    taken: U64
    not_taken: U64


class SingleBranchCollector:
    """Counts the newest entry of samples that have no real stack."""

    def __init__(self, spaces: AddressSpaces, events: Sequence[EventInfo]) -> None:
        self._spaces = spaces
        self._is_single = any(event.records_single_branches for event in events)
        self._parts: list[SingleBranches] = []
        self._others: tuple[SingleBranches, ...] = ()

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch, spaces = samples.batch, samples.spaces
        length = np.diff(batch.offsets)
        chosen = (spaces >= 0) & (length > 0) & (length <= _MOST_ENTRIES)
        first = np.where(chosen, batch.offsets[:-1], 0)
        chosen[chosen] = _are_branches(batch.flags[first[chosen]])
        self._add_entries(spaces[chosen], batch.entries[first[chosen]], batch.weight[chosen])

    def _add_entries(self, spaces: I64, entries: U64, weight: U64) -> None:
        """Count entries (k, 3)."""
        image, inside = self._spaces.to_image(spaces, runtime_addresses(entries[:, 0]))
        fell_through = entries[inside, 2] & np.uint64(NOT_TAKEN) != 0
        taken = np.where(fell_through, np.uint64(0), weight[inside])
        self._parts.append(_summed(image[inside], taken, weight[inside] - taken))

    def merge(self, other: SingleBranchCollector) -> None:
        """Add what another one saw."""
        self._others += (other.result(),)

    def result(self) -> SingleBranches:
        """What was seen; nothing where no entry is known to be a single branch.

        Only recorders of single branches write entries that were not taken.
        """
        found = merge(self._parts)
        is_known = self._is_single or found.not_taken.any()
        return merge([found, *self._others] if is_known else self._others)


def _are_branches(flags: U64) -> Bools:
    """Which entries are branches of the program that were executed."""
    found: Bools = (type_of(flags) < FIRST_EXCEPTION) & (spec_of(flags) != SPEC_WRONG_PATH)
    return found


def _summed(address: U64 | PlacedAddresses, taken: U64, not_taken: U64) -> SingleBranches:
    (unique,), (taken, not_taken) = sum_by((address,), (taken, not_taken))
    return SingleBranches(placed_addresses(unique), taken, not_taken)


def merge(parts: Sequence[SingleBranches]) -> SingleBranches:
    """Add up what several readings of one program saw, in any order."""
    return _summed(*end_to_end(parts, "address", "taken", "not_taken"))


SINGLE_BRANCHES = Finding(
    "single branches", lambda known: SingleBranchCollector(known.spaces, known.events)
)
