"""From branch stacks to `BranchCounts`.

A stack of four entries, newest first, in a program loaded where it was linked::

    e0  120 -> 200      e1  130 -> 100      e2  210 -> 120      e3  180 -> 200

The fall-throughs between neighbours run from the older one's target to the newer one's source:
100…120, 120…130, 200…210. The newest entry's own is still running, so its end is unknown:

>>> import numpy as np
>>> from lbr2pgo.counting.address_spaces import AddressSpaces
>>> from lbr2pgo.program.elf.layout import ImageLayout, Segment
>>> from lbr2pgo.model.branch_stacks import from_lists
>>> from lbr2pgo.counting.trace_table import TraceTable
>>> layout = ImageLayout("a.out", None, "x86-64", False, (Segment(0, 0, 4096, 4096, True),))
>>> stack = [(0x120, 0x200, 2), (0x130, 0x100, 2), (0x210, 0x120, 1), (0x180, 0x200, 2)]
>>> table = TraceTable(AddressSpaces.fixed(layout))
>>> table.add(from_lists([stack]), np.zeros(1, np.int64), np.zeros(1, np.uint8))
>>> counts, outside = table.counts()
>>> for row in counts.rows():
...     print(row)
0x120 -> 0x200, end unknown: 1, mispredicted 0
0x130 -> 0x100, straight on to 0x120: 1, mispredicted 0
0x180 -> 0x200, straight on to 0x210: 1, mispredicted 0
0x210 -> 0x120, straight on to 0x130: 1, mispredicted 1
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import partial
from typing import Generic, TypeVar

from lbr2pgo.counting.bias import Correction
from lbr2pgo.counting.borders import Borders, merge
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.counting.many_images import add_to_all
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.counting.sample_reading import SampleReading, in_one_pass
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import LineSource, Source, StackSource, SymbolResolver
from lbr2pgo.support import headway
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.sums import TooManyError
from lbr2pgo.support.threads import distribute, threads

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Counted(Generic[C]):
    """What was counted, `BranchCounts` or others, and how the binary was recognised."""

    counts: C
    match: ImageMatch | None
    """None for inputs that were counts already."""
    beside: tuple[ImageMatch, ...] = ()
    """How other images of the process were recognised."""
    borders: Borders = field(default_factory=lambda: merge(()))
    """Where branches that leave the image went, and where those that reach it came from."""
    correction: Correction | None = None
    """What is done against a bias, in the next reading if that was not known; None where nobody
    asked."""
    reading: SampleReading | None = None
    """Which counted, for another one to go on from."""

    @property
    def is_biased(self) -> bool:
        """Whether something is."""
        return self.correction is not None and self.correction.is_any


def count_together(
    readings: Sequence[SampleReading], progress: Progress | None = None
) -> list[Counted[BranchCounts]]:
    """Count every sample of a source for each of several images, in one pass over the source.

    Where the source holds symbols, these are the first one's.
    """
    files = readings[0].files
    first, *others = [
        [TraceTable(reading.spaces, files) for reading in readings] for _ in range(threads())
    ]
    with closing(in_one_pass(readings, progress)) as batches:
        distribute(batches, [partial(add_to_all, tables) for tables in (first, *others)])
    for tables in others:
        for table, other in zip(first, tables, strict=True):
            table.merge(other)
    return [_counted(*each) for each in zip(readings, first, strict=True)]


def look_together(readings: Sequence[SampleReading], progress: Progress | None = None) -> None:
    """Show every sample of a source to the onlookers of each reading, in one pass."""
    with closing(in_one_pass(readings, progress)) as batches:
        for _ in batches:
            pass


def _counted(reading: SampleReading, table: TraceTable) -> Counted[BranchCounts]:
    traces = table.traces()
    counts, outside = traces.counts()
    tallies = {
        **reading.tally.as_tally(table.tallies, outside),
        **waterfall.outside_in(traces.by_file()),
        "runs_in_image/between_pieces": table.between_pieces(),
    }
    counts = replace(counts, build_id=reading.image.layout.build_id, tallies=tallies)
    return Counted(
        counts, reading.match, reading.beside, traces.borders(), reading.correction(), reading
    )


def count(
    source: Source,
    layout: ImageLayout,
    options: CountingOptions | None = None,
    resolve: SymbolResolver | None = None,
    progress: Progress | None = None,
) -> Counted[BranchCounts]:
    """Counts of one image from any source; `resolve` finds symbols where it holds these.

    Where a bias is to be corrected and there is one, the source is read a second time.
    """
    image = ImageFacts(layout, resolve)
    found = count_image(source, image, options, progress)
    if isinstance(source, StackSource) and found.is_biased:
        reading = SampleReading(source, image, options, found.correction, earlier=found.reading)
        (found,) = count_together([reading], progress)
    return found


def count_image(
    source: Source,
    image: ImageFacts,
    options: CountingOptions | None = None,
    progress: Progress | None = None,
) -> Counted[BranchCounts]:
    """As `count`, by all that is known of the image, in one reading."""
    if isinstance(source, LineSource):
        raise InputError(
            "holds branches by function and source line, and no addresses: profiles need the "
            "address of each branch, and what ran between branches",
            where=source.info.path,
            cure="Show it with lbr2pgo report. For a profile record with perf record -b, whose "
            "perf.data lbr2pgo convert reads.",
        )
    if isinstance(source, StackSource):
        (counted,) = count_together([SampleReading(source, image, options)], progress)
        return counted
    try:
        with headway.heard_by(progress):
            return Counted(source.counts(image.layout), None)
    except TooManyError as error:
        raise TooManyError(source.info.path) from error
