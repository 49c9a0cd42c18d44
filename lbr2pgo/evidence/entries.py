"""Every entry of every stack with its flags, as `perf report` sees it: unjudged and unmended.

>>> import numpy as np
>>> from lbr2pgo.counting.address_spaces import AddressSpaces
>>> from lbr2pgo.evidence.collector import Samples
>>> from lbr2pgo.evidence.sample_runs import KnownRuns
>>> from lbr2pgo.model.branch_stacks import MISPREDICTED, from_lists
>>> from lbr2pgo.program.code.instructions import InstructionTable
>>> from lbr2pgo.program.elf.layout import ImageLayout, Segment
>>> layout = ImageLayout("a.out", None, "x86-64", False, (Segment(0, 0, 4096, 4096, True),))
>>> stack = [(0x120, 0x200, MISPREDICTED), (0x120, 0x200, 0), (0x7f00, 0x100, 0)]
>>> spaces, one = AddressSpaces.fixed(layout), (np.zeros(1, np.int64), np.zeros(1, np.uint8))
>>> collector = EntryCollector(spaces)
>>> collector.add(Samples(from_lists([stack]), *one, KnownRuns(spaces, InstructionTable.empty())))
>>> found = collector.result()
>>> for row in zip(found.from_.tolist(), found.to.tolist(), found.known.tolist()):
...     print(*map(hex, row))
0x0 0x100 0x2
0x120 0x200 0x3
0x120 0x200 0x3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.collector import Finding, Samples, no_files
from lbr2pgo.model.branch_counts import FROM, TO, sum_by
from lbr2pgo.model.branch_stacks import (
    ABORT,
    CYCLES_MASK,
    CYCLES_SHIFT,
    IN_TRANSACTION,
    MISPREDICTED,
    PREDICTED,
)
from lbr2pgo.native import bits
from lbr2pgo.support.addresses import (
    PlacedAddresses,
    RuntimeAddresses,
    placed_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.tables import Tabular, end_to_end, table

_CYCLES = (
    CYCLES_MASK << CYCLES_SHIFT
    | 0xFFFFFFFFFFFFFFFF >> bits.CYCLES_HIGH_SHIFT << bits.CYCLES_HIGH_SHIFT
)
_KEPT = np.uint64(MISPREDICTED | PREDICTED | IN_TRANSACTION | ABORT | _CYCLES)
"""Bits of flags that tell entries apart here."""


@table
class EntryCounts(Tabular):
    """Entries with an end in the image; columns of equal length, unique by the first five."""

    from_: PlacedAddresses
    to: PlacedAddresses
    known: U64
    """FROM and TO: which ends are in the image; the others are 0."""
    file: I64
    """The file that an end outside is in (`Pass.outside`)."""
    flags: U64
    """As in `BranchStacks`, without type and privilege."""
    count: U64


_COLUMNS = tuple(column.name for column in fields(EntryCounts))


def merge(parts: Sequence[EntryCounts]) -> EntryCounts:
    """Add up, in any order."""
    *keys, count = end_to_end(parts, *_COLUMNS)
    return _summed(keys, count)


def _summed(keys: Sequence[U64], count: U64) -> EntryCounts:
    (from_, to, known, file, flags), (total,) = sum_by(tuple(keys), (count,))
    ends = placed_addresses(from_), placed_addresses(to)
    return EntryCounts(*ends, known, file.astype(np.int64), flags, total)


class EntryCollector:
    """Counts the entries of all samples that map the image."""

    def __init__(
        self, spaces: AddressSpaces, outside: Callable[[RuntimeAddresses], I64] = no_files
    ) -> None:
        self._spaces, self._outside = spaces, outside
        self._found = merge(())

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        batch = samples.batch
        lengths = np.diff(batch.offsets)
        of_entry = np.repeat(samples.spaces, lengths)
        weight = np.repeat(batch.weight, lengths)
        self._found = merge([self._found, self._seen(of_entry, batch.entries, weight)])

    def _seen(self, spaces: I64, entries: U64, weight: U64) -> EntryCounts:
        from_, is_from = self._spaces.to_image(spaces, runtime_addresses(entries[:, 0]))
        to, is_to = self._spaces.to_image(spaces, runtime_addresses(entries[:, 1]))
        known = is_from * np.uint64(FROM) | is_to * np.uint64(TO)
        inside = known != 0
        entries, weight = entries[inside], weight[inside]
        ends, file = [from_[inside], to[inside]], np.zeros(len(entries), np.uint64)
        for end, is_known, addresses in zip(ends, (is_from, is_to), entries.T, strict=False):
            there = is_known[inside]
            end[~there] = 0
            file[~there] = self._outside(runtime_addresses(addresses[~there]))
        return _summed([*ends, known[inside], file, entries[:, 2] & _KEPT], weight)

    def merge(self, other: EntryCollector) -> None:
        """Add what another one saw."""
        self._found = merge([self._found, other._found])

    def result(self) -> EntryCounts:
        """What was seen."""
        return self._found


ENTRIES = Finding("entries", lambda known: EntryCollector(known.spaces, known.outside))
