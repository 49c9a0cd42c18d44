"""Outcomes of branches that were sampled one by one.

Arm SPE samples instructions: of a branch it tells whether it was taken, where it went and whether
that was predicted. Such entries are no stack, but unlike a stack's they also show branches that
were not taken (perf: util/arm-spe.c, arm_spe__prep_branch_stack).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.model.branch_stacks import (
    FIRST_EXCEPTION,
    NOT_TAKEN,
    SPEC_WRONG_PATH,
    BranchStacks,
    spec_of,
    type_of,
)
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.addresses import ImageAddresses, image_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools

_MOST_ENTRIES = 2
"""The branch, and with FEAT_SPE_PBT where the branch before it went to."""


@dataclass(frozen=True, slots=True)
class SingleBranches:
    """Columns of equal length, in image addresses, ascending."""

    address: ImageAddresses
    taken: U64
    not_taken: U64

    def __len__(self) -> int:
        return len(self.address)


class SingleTable:
    """Counts the newest entry of samples that have no real stack."""

    def __init__(self, spaces: AddressSpaces, events: Sequence[EventInfo]) -> None:
        self._spaces = spaces
        self._is_single = any(event.records_single_branches for event in events)
        self._parts: list[SingleBranches] = []

    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None:
        """Look at a batch, given each sample's space (`counting.Reading.batches`)."""
        length = np.diff(batch.offsets)
        chosen = (spaces >= 0) & (length > 0) & (length <= _MOST_ENTRIES)
        first = np.where(chosen, batch.offsets[:-1], 0)
        chosen[chosen] = _are_branches(batch.flags[first[chosen]])
        for space in np.unique(spaces[chosen]).tolist():
            rows = np.flatnonzero(chosen & (spaces == space))
            entries = batch.entries[first[rows]]
            image, piece = self._spaces.to_image(space, runtime_addresses(entries[:, 0]))
            inside = piece < len(self._spaces.pieces[space])
            fell_through = entries[:, 2] & np.uint64(NOT_TAKEN) != 0
            weight = batch.weight[rows]
            columns = (np.where(fell_through, 0, weight), np.where(fell_through, weight, 0))
            self._parts.append(
                _summed(image[inside], *(c[inside].astype(np.uint64) for c in columns))
            )

    def counts(self) -> SingleBranches:
        """What was seen; nothing where no entry is known to be a single branch.

        Only recorders of single branches write entries that were not taken.
        """
        found = merge(self._parts)
        return found if self._is_single or found.not_taken.any() else merge([])


def _are_branches(flags: U64) -> Bools:
    """Which entries are branches of the program that were executed."""
    found: Bools = (type_of(flags) < FIRST_EXCEPTION) & (spec_of(flags) != SPEC_WRONG_PATH)
    return found


def _summed(address: ImageAddresses, taken: U64, not_taken: U64) -> SingleBranches:
    (unique,), (taken, not_taken) = sum_by((address,), (taken, not_taken))
    return SingleBranches(image_addresses(unique), taken, not_taken)


def merge(parts: Sequence[SingleBranches]) -> SingleBranches:
    """Add up what several readings of one program saw, in any order."""
    columns = [
        np.concatenate([np.empty(0, np.uint64), *(getattr(part, name) for part in parts)])
        for name in ("address", "taken", "not_taken")
    ]
    return _summed(*columns)
