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
>>> runs = KnownRuns(spaces, InstructionTable.empty())
>>> collector = CycleCollector(runs)
>>> collector.add(Samples(from_lists([stack]), *one, runs))
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
from lbr2pgo.evidence._walks import add_runs, count_iterations
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.evidence.sample_runs import KnownRuns
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.native.key_table import KNOWN_BITS, KeyTable
from lbr2pgo.support.addresses import (
    PlacedAddresses,
    RuntimeAddresses,
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
    """Counts runs by their numbers, of which runs with other cycles have others."""

    def __init__(self, runs: KnownRuns) -> None:
        self._runs = runs
        self._sums = np.zeros((0, 3), np.uint64)
        self._others: tuple[CycleCounts, ...] = ()

    def add(self, samples: Samples) -> None:
        """Count a batch."""
        runs = samples.runs
        more = len(runs.places) - len(self._sums)
        if more > 0:
            room = np.zeros((more + len(self._sums), 3), np.uint64)
            self._sums = np.concatenate((self._sums, room))
        add_runs(runs.run, runs.prediction_of_both, runs.sample, runs.weight, self._sums)

    def merge(self, other: CycleCollector) -> None:
        """Take over what another one counted, in other address spaces maybe."""
        self._others += (other.result(),)

    def result(self) -> CycleCounts:
        """The counts in placed addresses."""
        counted = np.flatnonzero(self._sums[:, 0])
        ends, space, cycles = self._runs.rows()
        sums = self._sums[counted]
        counts = _placed(self._runs.spaces, ends[counted], space[counted], cycles[counted], sums)
        return merge([counts, *self._others])


class IterationCollector:
    """Counts backward branches by the cycles since each was last taken, if in the same stack.

    `start` is the branch's target, `end` the branch. Memory grows with distinct ones only.
    """

    def __init__(self, spaces: AddressSpaces) -> None:
        self._spaces = spaces
        self._table = KeyTable()
        self._others: tuple[CycleCounts, ...] = ()

    def add(self, samples: Samples) -> None:
        """Count a batch."""
        count_iterations(samples.stacks, samples.runs.reason, self._table)

    def merge(self, other: IterationCollector) -> None:
        """Take over what another one counted, in other address spaces maybe."""
        self._others += (other.result(),)

    def result(self) -> CycleCounts:
        """The counts in placed addresses."""
        keys, values = self._table.rows()
        space = (keys[:, 3] >> np.uint64(KNOWN_BITS)).astype(np.int64)
        ends = runtime_addresses(keys[:, :2])
        return merge([_placed(self._spaces, ends, space, keys[:, 2], values), *self._others])


def _placed(
    spaces: AddressSpaces, ends: RuntimeAddresses, space: I64, cycles: U64, sums: U64
) -> CycleCounts:
    """Counts (n, 3) of runs between run-time addresses (n, 2), as far as these are in the image."""
    runs, inside = spaces.runs_to_image(space, ends)
    return CycleCounts(*np.column_stack((runs, cycles, sums))[inside].T)


CYCLES = Finding("cycles", lambda known: CycleCollector(known.runs))
"""Of runs."""
ITERATIONS = Finding("iterations", lambda known: IterationCollector(known.spaces))
"""From one occurrence of a backward branch to the next."""
