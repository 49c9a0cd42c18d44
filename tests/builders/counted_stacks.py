"""Stacks of a small image, and what is counted of them."""

from __future__ import annotations

from collections.abc import Sequence

from builders.sources import BASE, LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import count_image
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import END, FROM, TO, BranchCounts
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.sources.base import EventInfo

ABORT, NOT_TAKEN = 1 << 3, 1 << 33
SYSCALL, SYSRET, ERET, IRQ, SERROR, EXTENDED = (kind << 20 for kind in (7, 8, 11, 12, 13, 15))
WRONG_PATH = 1 << 24
# The image as linked holds code at 0x2800…0x3800.
A, B, C, D, E, F, G, H = range(0x2800, 0x2880, 0x10)
KERNEL = 0xFFFFFFFF81000000
LIBRARY = 0x7F1111110000

Row = tuple[int | None, int | None, int | None, int]
Entry = tuple[int, int] | tuple[int, int, int]


def rows_of(counts: BranchCounts) -> list[Row]:
    """From, to, end (None where unknown) and count of each row."""
    return [
        (
            int(counts.from_[i]) if counts.known[i] & FROM else None,
            int(counts.to[i]) if counts.known[i] & TO else None,
            int(counts.end[i]) if counts.known[i] & END else None,
            int(counts.count[i]),
        )
        for i in range(len(counts))
    ]


def counted(
    source: MemorySource, facts: ImageFacts | None = None, **options: object
) -> BranchCounts:
    """Counts of a source, checked to lose nothing silently."""
    chosen = CountingOptions(**options)  # type: ignore[arg-type]
    found = count_image(source, facts or ImageFacts(LAYOUT), chosen).counts
    waterfall.check(found.tallies)
    return found


def of_stack(*stack: Entry, events: Sequence[EventInfo] = ()) -> BranchCounts:
    """Counts of one stack in a process that has the image where it was linked."""
    sample = Sample(stack, event=0 if events else -1)
    return counted(MemorySource([sample], [mapping(base=0)], tuple(events)))


def lost(counts: BranchCounts) -> dict[str, int]:
    return waterfall.losses_of(counts.tallies, "branches_in_image")


def event(*bits: str) -> EventInfo:
    return EventInfo("cycles", sum(1 << BRANCH_FILTER_BITS[bit] for bit in bits))


def loaded(*entries: Entry, at: int = BASE, **fields: int) -> Sample:
    """A sample of a process in which the image stands at `at`."""
    return Sample([(a + at, b + at, *rest) for a, b, *rest in entries], **fields)
