"""What the entries of a recording's stacks are to each other."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.native.walk import StackKind


class KindCollector:
    """Notes the kinds of stacks that are counted."""

    def __init__(self) -> None:
        self._kinds: set[StackKind] = set()

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        counted = samples.kinds[samples.spaces >= 0]
        self._kinds.update(map(StackKind, np.flatnonzero(np.bincount(counted)).tolist()))

    def merge(self, other: KindCollector) -> None:
        """Add what another one saw."""
        self._kinds |= other._kinds

    def result(self) -> frozenset[StackKind]:
        """What was seen."""
        return frozenset(self._kinds)


STACK_KINDS = Finding("stack kinds", lambda _: KindCollector())
