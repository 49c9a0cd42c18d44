from __future__ import annotations

import numpy as np
from builders.sources import LAYOUT, MemorySource, Sample, batch_of

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.count import count
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.walk import Reason, StackKind
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Addresses
from lbr2pgo.support.arrays import U64


def random_batch(seed: int, samples: int) -> BranchStacks:
    pairs = np.random.default_rng(seed).integers(0x2800, 0x3800, (samples, 32, 2))
    return batch_of([Sample([(a, b) for a, b in stack]) for stack in pairs.tolist()])


def table_of(*batches: BranchStacks) -> TraceTable:
    table = TraceTable(AddressSpaces.fixed(LAYOUT))
    for batch in batches:
        kinds = np.full(len(batch), StackKind.CONSECUTIVE, np.uint8)
        table.add(batch, np.zeros(len(batch), np.int64), kinds)
    return table


def test_the_table_grows_with_what_is_distinct() -> None:
    rng = np.random.default_rng(1)
    stacks = [
        [(int(a), int(b)) for a, b in rng.integers(0x2800, 0x3800, (32, 2))] for _ in range(6000)
    ]
    batch = batch_of([Sample(stack) for stack in stacks])
    table = TraceTable(AddressSpaces.fixed(LAYOUT))
    kinds = np.full(len(batch), StackKind.SELECTED, np.uint8)
    table.add(batch, np.zeros(len(batch), np.int64), kinds)
    counts, outside = table.counts()
    duplicates = int(table.tallies[Reason.DUPLICATE])
    assert int(counts.count.sum()) + duplicates == 6000 * 32
    assert outside == 0
    pairs = np.unique(batch.entries[:, :2], axis=0)
    assert len(counts) == len(pairs) > 1 << 16


def test_merged_tables_hold_what_one_would() -> None:
    batches = [random_batch(seed, 20) for seed in range(5)]
    # One branch in all of them, so that tables share keys.
    batches += [batch_of([Sample([(0x2900, 0x2A00)])])] * 3
    one = table_of(*batches)
    first, second, third = (table_of(*batches[i::3]) for i in range(3))
    second.merge(third)
    first.merge(second)
    assert first.tallies.tolist() == one.tallies.tolist()
    (counts, outside), (expected, expected_outside) = first.counts(), one.counts()
    assert list(counts.rows()) == list(expected.rows())
    assert outside == expected_outside


def test_runs_between_two_load_segments_are_none_and_are_counted() -> None:
    segments = (Segment(0x1000, 0, 0x100, 0x100, True), Segment(0x3000, 0x1000, 0x100, 0x100, True))
    layout = ImageLayout("a.out", None, "x86-64", False, segments)
    samples = [
        Sample([(0x3010, 0x1000), (0x1010, 0x1000)], weight=5),
        Sample([(0x1010, 0x1000), (0x1010, 0x1000)], weight=7),
    ]
    counts = count(MemorySource(samples, addresses=Addresses.IMAGE), layout).counts
    assert waterfall.losses_of(counts.tallies, "runs_in_image") == {"between_pieces": 5}
    assert [(int(a), int(b), int(n)) for a, b, n in zip(*_columns(counts), strict=True)] == [
        (0x1000, 0x1010, 7)
    ]
    assert int(counts.branches().count.sum()) == 24
    assert waterfall.is_sound(counts.tallies)


def _columns(counts: BranchCounts) -> tuple[U64, U64, U64]:
    runs = counts.runs()
    return runs.start, runs.end, runs.count
