"""`ContextCounts` as a finding of replayed recordings."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lbr2pgo.evidence.collector import Finding
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.sources.base import StackSource

if TYPE_CHECKING:
    from lbr2pgo.evidence.contexts.unwind import ContextTable
    from lbr2pgo.model.context_counts import ContextCounts


def has_call_chains(found: Replayed) -> bool:
    """Whether samples of a recording may have call stacks, and all recordings hold samples."""
    infos = [source.info for source in found.sources]
    is_sampled = all(isinstance(source, StackSource) for source in found.sources)
    is_recorded = is_sampled and not found.is_inferred
    return is_recorded and any(info.has_call_chains for info in infos)


def contexts(found: Replayed) -> Finding[ContextCounts]:
    """What ran in which calling context, in recordings that hold samples."""

    @cache
    def table() -> ContextTable:
        from lbr2pgo.evidence.contexts.unwind import ContextTable  # who asks may find no samples

        flow = found.flow
        return ContextTable(
            found.program, found.judged_by, flow.indirect_targets(), flow.instructions
        )

    return Finding("contexts", lambda known: table().source(known.spaces))
