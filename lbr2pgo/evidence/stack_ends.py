"""Which branches stand at the two ends of stacks.

In an unbiased recording every branch has the same share at every position: a stack is a window on
the run, laid down anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces, rows_by
from lbr2pgo.counting.bias import neighbours
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64
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
        self._parts: list[StackEnds] = []

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch, spaces = samples.batch, samples.spaces
        rows = neighbours(batch, spaces, samples.kinds)
        weight = batch.weight[rows]
        nothing = np.zeros_like(weight)
        for at, newest, oldest in (
            (batch.offsets[:-1][rows], weight, nothing),
            (batch.offsets[1:][rows] - 1, nothing, weight),
        ):
            self._add(spaces[rows], batch.entries[at, 0], newest, oldest)

    def _add(self, spaces: I64, sources: U64, newest: U64, oldest: U64) -> None:
        for space, rows in rows_by(spaces):
            image, inside = self._spaces.to_image(space, runtime_addresses(sources[rows]))
            self._parts.append(_summed(image[inside], newest[rows][inside], oldest[rows][inside]))

    def merge(self, other: StackEndCollector) -> None:
        """Add what another one saw."""
        self._parts.append(other.result())

    def result(self) -> StackEnds:
        """What was seen."""
        return merge(self._parts)


def merge(parts: Sequence[StackEnds]) -> StackEnds:
    """Add up what several readings of one program saw, in any order."""
    return _summed(*end_to_end(parts, "address", "newest", "oldest"))


def _summed(address: U64, newest: U64, oldest: U64) -> StackEnds:
    (unique,), sums = sum_by((address,), (newest, oldest))
    return StackEnds(placed_addresses(unique), *sums)


STACK_ENDS = Finding("stack ends", lambda known: StackEndCollector(known.spaces))
