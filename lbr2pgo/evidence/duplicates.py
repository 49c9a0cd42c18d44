"""The copies of a stack's newest entry that some recorders make.

Counting leaves them out, since the branch was taken once. `perf report` counts every entry of the
recording; a report that is laid beside it must do so too.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import TraceTable, stacks_of
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.duplicates import list_duplicates
from lbr2pgo.support.arrays import I64, U8


class CopyTable:
    """Counts the entries that counting takes for copies, as branches of their own."""

    def __init__(self, spaces: AddressSpaces) -> None:
        self._table = TraceTable(spaces)
        self._bounds = spaces.bounds

    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None:
        """Look at a batch, given each sample's space and kind (`counting.Reading.batches`)."""
        rows = np.empty(len(batch), dtype=np.int64)
        rows = rows[: list_duplicates(stacks_of(batch, spaces, kinds, self._bounds), rows)]
        copies = BranchStacks(
            entries=batch.entries[batch.offsets[rows] + 1],
            offsets=np.arange(len(rows) + 1, dtype=np.int64),
            pid=batch.pid[rows],
            tid=batch.tid[rows],
            time=batch.time[rows],
            event=batch.event[rows],
            ip=batch.ip[rows],
            weight=batch.weight[rows],
        )
        self._table.add(copies, spaces[rows], kinds[rows])

    def counts(self) -> BranchCounts:
        """The copies in image addresses."""
        return self._table.counts()[0]
