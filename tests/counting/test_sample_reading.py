"""What becomes of batches before they are counted."""

from __future__ import annotations

from builders.counted_stacks import (
    B,
    C,
)
from builders.sources import LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.count import count


def test_progress_tells_all_samples() -> None:
    told: list[tuple[int, float | None]] = []
    source = MemorySource([Sample([(B, C)])] * 7, [mapping()], batch_size=3)
    count(source, LAYOUT, progress=lambda *now: told.append(now))
    assert told == [(3, None), (3, None), (1, None)]
