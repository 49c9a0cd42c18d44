from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.profiles.propeller import block_layout
from lbr2pgo.profiles.propeller._ext_tsp import layout
from lbr2pgo.profiles.propeller.block_flow import BlockEdges
from lbr2pgo.profiles.propeller.block_layout import within_functions
from lbr2pgo.support.intervals import offsets_of
from lbr2pgo.support.threads import at_most


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at_once", [1, 7, 40, 1 << 20])
def test_functions_are_laid_out_alike_together_and_apart(
    monkeypatch: pytest.MonkeyPatch, threads: int, at_once: int
) -> None:
    chance = np.random.default_rng(at_once)
    length = chance.integers(1, 12, 60)
    offsets, owner = offsets_of(length), np.repeat(np.arange(60), length)
    source = np.sort(chance.integers(0, offsets[-1], 500))
    target = offsets[owner[source]] + chance.integers(0, length[owner[source]])
    size, count = chance.integers(1, 60, (2, offsets[-1])).astype(np.uint64)
    edges = BlockEdges(source, target, chance.integers(1, 999, 500).astype(np.uint64))
    monkeypatch.setattr(block_layout, "_BLOCKS_AT_ONCE", at_once)
    with at_most(threads):
        found = within_functions(offsets, size, count, edges)
    whole = layout(
        offsets, size, count, np.searchsorted(source, offsets), source, target, edges.count
    )
    assert found.tolist() == whole.tolist()
    assert not np.array_equal(found, np.arange(len(found)))


def test_nothing_to_lay_out() -> None:
    none, weights = np.empty(0, np.int64), np.empty(0, np.uint64)
    edges = BlockEdges(none, none, weights)
    assert len(within_functions(np.zeros(1, np.int64), weights, weights, edges)) == 0
