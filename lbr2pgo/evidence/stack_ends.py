"""Which branches stand at the two ends of stacks.

In an unbiased recording every branch has the same share at every position: a stack is a window on
the run, laid down anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.bias import neighbours
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.tables import Tabular, end_to_end, table


@table
class StackEnds(Tabular):
    """Branches by placed address, ascending; columns of equal length."""

    address: PlacedAddresses
    newest: U64
    """How many stacks begin with it."""
    oldest: U64
    """How many stacks end with it."""


class StackEndCollector:
    """Counts the newest and the oldest entry of each stack of neighbours."""

    def __init__(self, spaces: AddressSpaces) -> None:
        self._spaces = spaces
        self._newest, self._oldest = RowSums(), RowSums()
        self._others: tuple[StackEnds, ...] = ()

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch, spaces = samples.batch, samples.spaces
        rows = neighbours(batch, spaces, samples.kinds)
        space, weight = spaces[rows].astype(np.uint64), batch.weight[rows]
        for sums, at in (
            (self._newest, batch.offsets[:-1][rows]),
            (self._oldest, batch.offsets[1:][rows] - 1),
        ):
            sums.add_rows(batch.entries[at, 0], space, np.zeros_like(space), weight)

    def merge(self, other: StackEndCollector) -> None:
        """Add what another one saw."""
        self._others += (other.result(),)

    def result(self) -> StackEnds:
        """What was seen."""
        newest, of_newest = self._placed(self._newest)
        oldest, of_oldest = self._placed(self._oldest)
        return merge([
            StackEnds(newest, of_newest, np.zeros_like(of_newest)),
            StackEnds(oldest, np.zeros_like(of_oldest), of_oldest),
            *self._others,
        ])  # fmt: skip

    def _placed(self, sums: RowSums) -> tuple[PlacedAddresses, U64]:
        """The addresses in the image, and how often there was each."""
        address, space, _ = sums.rows().T
        found, is_inside = self._spaces.to_image(space.astype(np.int64), runtime_addresses(address))
        return found[is_inside], sums.counts()[is_inside]


def merge(parts: Sequence[StackEnds]) -> StackEnds:
    """Add up what several readings of one program saw, in any order."""
    return _summed(*end_to_end(parts, "address", "newest", "oldest"))


def _summed(address: U64, newest: U64, oldest: U64) -> StackEnds:
    (unique,), sums = sum_by((address,), (newest, oldest))
    return StackEnds(placed_addresses(unique), *sums)


STACK_ENDS = Finding("stack ends", lambda known: StackEndCollector(known.spaces))
