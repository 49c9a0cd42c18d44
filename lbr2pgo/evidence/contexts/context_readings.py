"""From replayed recordings to `ContextCounts`: a second pass over the samples."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lbr2pgo.counting.count import SampleReading
from lbr2pgo.replay.recordings import Replayed
from lbr2pgo.sources.base import StackSource

if TYPE_CHECKING:
    from lbr2pgo.model.context_counts import ContextCounts


def has_call_chains(found: Replayed) -> bool:
    """Whether samples of a recording may have call stacks, and all recordings hold samples."""
    infos = [source.info for source in found.sources]
    is_sampled = all(isinstance(source, StackSource) for source in found.sources)
    is_recorded = is_sampled and not found.is_inferred
    return is_recorded and any(info.has_call_chains for info in infos)


def unwound(found: Replayed) -> ContextCounts:
    """What ran in which calling context, in recordings that hold samples."""
    from lbr2pgo.evidence.contexts.unwind import (
        ContextTable,  # who asks for call chains may find none
    )

    program = found.program
    flow = found.flow
    targets, decoded = flow.indirect_targets(), flow.instructions
    table = ContextTable(program, found.judged_by, targets, decoded)
    for source in found.sources:
        if isinstance(source, StackSource):
            reading = SampleReading(source, found.image, found.asked)
            each = table.source(reading.spaces)
            with closing(reading.batches()) as batches:
                for batch, spaces, kinds in batches:
                    each.add(batch, spaces, kinds)
    return table.counts()
