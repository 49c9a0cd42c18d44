"""How often each fall-through took how many cycles.

An entry's cycles are those since the entry before it: they belong to the run that starts at the
older entry's target and ends at its own source. In the stack of `lbr2pgo.counting.count`, with
cycles:

>>> import numpy as np
>>> from lbr2pgo.counting.address_spaces import AddressSpaces
>>> from lbr2pgo.evidence.collector import Samples
>>> from lbr2pgo.evidence.sample_runs import KnownRuns
>>> from lbr2pgo.model.branch_stacks import from_lists
>>> from lbr2pgo.program.code.instructions import InstructionTable
>>> from lbr2pgo.program.elf.layout import ImageLayout, Segment
>>> layout = ImageLayout("a.out", None, "x86-64", False, (Segment(0, 0, 4096, 4096, True),))
>>> stack = [(0x120, 0x200, 7 << 4), (0x130, 0x100, 9 << 4), (0x210, 0x120, 0)]
>>> spaces, one = AddressSpaces.fixed(layout), (np.zeros(1, np.int64), np.zeros(1, np.uint8))
>>> collector = CycleCollector(spaces)
>>> collector.add(Samples(from_lists([stack]), *one, KnownRuns(spaces, InstructionTable.empty())))
>>> counts = collector.result()
>>> for row in zip(counts.start.tolist(), counts.end.tolist(), counts.cycles.tolist()):
...     print(*map(hex, row))
0x100 0x120 0x7
0x120 0x130 0x9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence._walks import count_cycles, count_iterations
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.native.key_table import KNOWN_BITS, KeyTable
from lbr2pgo.support.addresses import (
    PlacedAddresses,
    placed_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.tables import Tabular, table, taken


@table
class CycleCounts(Tabular):
    """Columns of equal length, in placed addresses; rows unique by the first three and sorted."""

    start: PlacedAddresses
    """First instruction of the run."""
    end: PlacedAddresses
    """The branch that ends it."""
    cycles: U64
    """How many, or MISSING, or SATURATED."""
    count: U64
    mispredicted: U64
    """How often the branch that led to the start, one in between or the one at the end was."""
    prediction_unknown: U64
    """How often none was, as far as is known, and of some it is not."""

    def take(self, rows: I64) -> CycleCounts:
        """Some of the rows."""
        return taken(self, rows)


_COLUMNS = tuple(column.name for column in fields(CycleCounts))


def merge(counts: Sequence[CycleCounts]) -> CycleCounts:
    """Add up counts of one image, in any order."""
    columns = [
        np.concatenate([np.empty(0, np.uint64), *(getattr(c, name) for c in counts)])
        for name in _COLUMNS
    ]
    keys, sums = sum_by(columns[:3], columns[3:])
    start, end = map(placed_addresses, keys[:2])
    return CycleCounts(start, end, keys[2], *sums)


class CycleCollector:
    """Counts runs by run-time address and cycles; memory grows with distinct ones only.

    With `iterations`, counts backward branches instead: `start` is the branch's target, `end` the
    branch, `cycles` those since the branch was last taken, if that is in the same stack.
    """

    def __init__(self, spaces: AddressSpaces, *, iterations: bool = False) -> None:
        self._spaces = spaces
        self._table = KeyTable()
        self._count = count_iterations if iterations else count_cycles
        self._others: tuple[CycleCounts, ...] = ()

    def add(self, samples: Samples) -> None:
        """Count a batch."""
        self._count(samples.stacks, self._table)

    def merge(self, other: CycleCollector) -> None:
        """Take over what another one counted, in other address spaces maybe."""
        self._others += (other.result(),)

    def result(self) -> CycleCounts:
        """The counts in placed addresses."""
        keys, values = self._table.rows()
        space = (keys[:, 3] >> np.uint64(KNOWN_BITS)).astype(np.int64)
        runs, inside = self._spaces.runs_to_image(space, runtime_addresses(keys[:, :2]))
        rows = np.column_stack((runs, keys[:, 2], values))[inside]
        return merge([CycleCounts(*rows.T), *self._others])


CYCLES = Finding("cycles", lambda known: CycleCollector(known.spaces))
"""Of runs."""
ITERATIONS = Finding("iterations", lambda known: CycleCollector(known.spaces, iterations=True))
"""From one occurrence of a backward branch to the next."""
