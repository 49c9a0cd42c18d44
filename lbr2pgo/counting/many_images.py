"""One batch of samples for many images, of which each sample touches few.

To an image that it does not touch, a sample is what it is to any such image: that is found once for
the batch. Each image counts the samples that touch it, and takes the rest from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.arrays import I64, U8

_MANY = 4
"""Images from which this costs less than to count the batch for each."""


def add_to_all(tables: Sequence[TraceTable], *selected: tuple[BranchStacks, I64, U8]) -> None:
    """Count a batch, as it was selected for each of several images, in the table of each."""
    alike: dict[tuple[int, bytes, bytes], list[int]] = {}
    for number, (batch, spaces, kinds) in enumerate(selected):
        which = id(batch), (spaces >= 0).tobytes(), kinds.tobytes()
        alike.setdefault(which, []).append(number)
    for numbers in alike.values():
        first = tables[numbers[0]]
        if len(numbers) < _MANY:
            for number in numbers:
                tables[number].add(*selected[number])
            continue
        batch, spaces, kinds = selected[numbers[0]]
        spans = first.spans_of(batch, spaces)
        far = first.far(batch, spaces, kinds, spans)
        for number in numbers:
            tables[number].add_near(*selected[number], far, spans)
