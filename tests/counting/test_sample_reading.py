"""What becomes of batches before they are counted."""

from __future__ import annotations

import pytest
from builders.counted_stacks import (
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    counted,
    lost,
    rows_of,
)
from builders.sources import LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.count import count
from lbr2pgo.counting.place import ImageFacts


def test_on_demand_what_is_no_code_lies_outside() -> None:
    """An entry that leads from outside to such a place is left out, as if it were not there."""
    source = MemorySource([Sample([(B, C), (0, E), (D, A)])], [mapping(base=0)])
    facts = ImageFacts(LAYOUT, code_of_llvm=lambda addresses: addresses != E, believes_entries=True)
    counts = counted(source, facts)
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1)}
    assert lost(counts) == {"outside": 1}


def test_progress_tells_all_samples() -> None:
    told: list[tuple[int, float | None]] = []
    source = MemorySource([Sample([(B, C)])] * 7, [mapping()], batch_size=3)
    count(source, LAYOUT, progress=lambda *now: told.append(now))
    assert told == [(3, None), (3, None), (1, None)]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_full_stack_raises_doubts_of_all_that_follow_in_whatever_batch(batch_size: int) -> None:
    full, short = [(B, A)] * 32, [(D, C), (F, E), (H, G)]
    samples = [Sample(stack) for stack in (short, full, short)]
    source = MemorySource(samples, [mapping(base=0)], batch_size=batch_size)
    found = counted(source, ImageFacts(LAYOUT, doubts_full_stacks=True))
    assert lost(found) == {"dropped": 4}
