"""The second entries of stacks that repeat the newest one for no reason of the program's.

Counting leaves them out, since the branch was taken once. `perf report` counts every entry of the
recording; a report that is laid beside it must do so too.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.evidence._walks import list_duplicates
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.count_sums import merge
from lbr2pgo.support.arrays import I64


class DuplicateCollector:
    """Counts what counting takes for duplicates, as branches of their own."""

    def __init__(self, spaces: AddressSpaces) -> None:
        self._table = TraceTable(spaces)
        self._others: tuple[BranchCounts, ...] = ()

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        rows = np.empty(len(samples.batch), dtype=np.int64)
        rows = rows[: list_duplicates(samples.stacks, rows)]
        self._table.add(
            _second_entries(samples.batch, rows), samples.spaces[rows], samples.kinds[rows]
        )

    def merge(self, other: DuplicateCollector) -> None:
        """Add what another one counted, in other address spaces maybe."""
        self._others += (other._counts(),)

    def result(self) -> BranchCounts | None:
        """The duplicates in placed addresses; None if there are none."""
        found = self._counts()
        return found if len(found) else None

    def _counts(self) -> BranchCounts:
        return merge([self._table.counts()[0], *self._others])


def _second_entries(batch: BranchStacks, rows: I64) -> BranchStacks:
    """The second entries of these samples, each as a stack of its own."""
    return BranchStacks(
        entries=batch.entries[batch.offsets[rows] + 1],
        offsets=np.arange(len(rows) + 1, dtype=np.int64),
        pid=batch.pid[rows],
        tid=batch.tid[rows],
        time=batch.time[rows],
        event=batch.event[rows],
        ip=batch.ip[rows],
        weight=batch.weight[rows],
    )


DUPLICATES = Finding("duplicates", lambda known: DuplicateCollector(known.spaces))
