from __future__ import annotations

import numpy as np
from builders.sources import LAYOUT, Sample, batch_of

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.walk import Reason, StackKind


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
