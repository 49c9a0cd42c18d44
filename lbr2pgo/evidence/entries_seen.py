"""What the entries themselves show of a recording."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED
from lbr2pgo.native.walk import StackKind


@dataclass(frozen=True, slots=True)
class EntriesSeen:
    """Of the samples that count."""

    kinds: frozenset[StackKind] = frozenset()
    entries: int = 0
    with_prediction: int = 0
    """Entries that say whether their branch was predicted."""


class EntryCollector:
    """Looks at all entries."""

    def __init__(self) -> None:
        self._kinds: set[StackKind] = set()
        self._entries = self._with_prediction = 0

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        is_counted = samples.spaces >= 0
        self._kinds.update(map(StackKind, np.unique(samples.kinds[is_counted]).tolist()))
        counted = np.repeat(is_counted, np.diff(samples.batch.offsets))
        says = samples.batch.flags & np.uint64(MISPREDICTED | PREDICTED) != 0
        self._entries += int(counted.sum())
        self._with_prediction += int((counted & says).sum())

    def merge(self, other: EntryCollector) -> None:
        """Add what another one saw."""
        self._kinds |= other._kinds
        self._entries += other._entries
        self._with_prediction += other._with_prediction

    def result(self) -> EntriesSeen:
        """What was seen."""
        return EntriesSeen(frozenset(self._kinds), self._entries, self._with_prediction)


ENTRIES_SEEN = Finding("entries seen", lambda _: EntryCollector())
